package scan

// stride walks all lanes over texts of one length, each in its own. Its run goes on until the texts end or a lane has
// something to report or does not know where to go.
//
// This is where a scan spends its time, so for some processors there is an assembly of it, which must do the same. The
// assembly reads an entry as what it is, 16 bits, which that processor does at once, and after it the state that it leads to.
type stride struct {
	texts  [lanes]string
	table  []uint32
	ascii  *[256]column
	at     int           // how far the lanes are
	states [lanes]uint32 // in what states, by number
	next   [lanes]uint32 // where they go from there, if the texts go on: 0 where that is not known
}

// runGo is run in Go.
func (s *stride) runGo() {
	t0, t1, t2, t3 := s.texts[0], s.texts[1], s.texts[2], s.texts[3]
	n0, n1, n2, n3 := s.states[0], s.states[1], s.states[2], s.states[3]
	table, ascii, i := s.table, s.ascii, s.at
	t1, t2, t3 = t1[:len(t0)], t2[:len(t0)], t3[:len(t0)]
	for ; i < len(t0); i++ {
		e0, e1, e2, e3 := ascii[t0[i]].of(table, n0), ascii[t1[i]].of(table, n1), ascii[t2[i]].of(table, n2), ascii[t3[i]].of(table, n3)
		if int32((e0-silent)|(e1-silent)|(e2-silent)|(e3-silent)) < 0 {
			s.next = [lanes]uint32{e0, e1, e2, e3}
			break
		}
		n0, n1, n2, n3 = e0, e1, e2, e3
	}
	s.at, s.states = i, [lanes]uint32{n0, n1, n2, n3}
}

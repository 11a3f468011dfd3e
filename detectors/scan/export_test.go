package scan

// Forget empties the automaton, as it is in a new Scanner.
func (s *Scanner) Forget() { s.cache.Store(newCache(s.program, firstStates)) }

// States is the number of states that were needed so far, and the bytes of their table.
func (s *Scanner) States() (n, bytes int) {
	c := s.cache.Load()
	return int(c.lastSilent - c.lastTold + 1), 4 * len(c.table)
}

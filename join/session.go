package join

import (
	"container/list"
	"context"
	"time"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

// session is the work of one generation.
type session struct {
	*Joiner
	g         sources.Generation
	parts     map[int]*partition
	open      int   // groups
	bytes     int64 // of open groups
	pasts     list.List
	pastBytes int64
	ended     map[string]time.Time // by tenant: when, by our clock, it was last told how a call ended that was asked before
	batch     batch
	committed time.Time // when positions were last moved
}

// partition is the state of one partition.
type partition struct {
	id     int
	open   map[groupID]*group
	order  list.List // of groups that are open or closed and not told, by their first part
	past   map[groupID]*past
	next   int64        // the first offset that was not taken
	clock  time.Time    // the broker's, of the last record
	swept  [2]time.Time // by our clock and by the broker's, at the last sweep
	marked map[groupID]int64
	until  int64 // marked is of no use from here on
	commit int64 // the group's position
}

// serve owns the claims of one generation until it ends.
func (j *Joiner) serve(ctx context.Context, g sources.Generation) error {
	s := &session{Joiner: j, g: g, parts: map[int]*partition{}, ended: map[string]time.Time{}}
	defer func() { j.waiting.Store(0); j.waitingBytes.Store(0) }()
	from, err := j.positions(ctx, g)
	for part, at := range from {
		p := &partition{id: part, open: map[groupID]*group{}, past: map[groupID]*past{}, next: at, commit: at}
		s.parts[part] = p
		if err == nil {
			err = s.readMarks(ctx, p)
		}
	}
	if err == nil {
		err = j.follow(ctx, g, from, s.take)
	}
	if ended(ctx, err) {
		return nil
	}
	return err
}

func header(r *sources.Record, name string) (string, bool) {
	for i := range r.Headers {
		if r.Headers[i].Key == name {
			return string(r.Headers[i].Value), true
		}
	}
	return "", false
}

// take takes a chunk: its parts join their groups, groups whose time has come are told, positions move.
func (s *session) take(ctx context.Context, f fetched) error {
	p := s.parts[f.Partition]
	for i := range f.Records {
		r := &f.Records[i]
		p.clock = r.Time
		s.add(p, r, f.asked)
		for s.open > s.cfg.Groups || s.bytes > s.cfg.MemoryBytes {
			s.Observer.Forced()
			s.close(s.oldest())
		}
		if s.batch.full() {
			if err := s.tell(ctx); err != nil {
				return err
			}
		}
	}
	p.next = f.Next
	if p.next >= p.until {
		p.marked = nil
	}
	s.sweep(p, f)
	s.forget()
	if err := s.tell(ctx); err != nil {
		return err
	}
	s.waiting.Store(int64(s.open))
	s.waitingBytes.Store(s.bytes)
	return s.commit(ctx)
}

// add lets a record join its group.
func (s *session) add(p *partition, r *sources.Record, at time.Time) {
	if s.noteMark(p, r) {
		return
	}
	if len(r.Key) == 0 {
		s.batch.reject(s.rejected(p, r.Offset, r.Time, r.Key, r.Value, r.Headers), ingest.MissingField, "the record has no key, which names its group")
		return
	}
	tenant, _ := header(r, ingest.HeaderTenant)
	id := groupID{tenant, string(r.Key)}
	if upto, told := p.marked[id]; told && r.Offset <= upto {
		return
	}
	g := p.open[id]
	if g != nil && s.isOver(g, r.Time.Sub(g.last), r.Time.Sub(g.begun)) {
		s.close(g)
		g = nil
	}
	if g == nil {
		g = &group{id: id, p: p, past: p.past[id]}
		if g.past != nil {
			if part, err := decode(r.Value); err == nil && !g.past.adds(&part) {
				s.Observer.Late("dropped")
				return
			}
		}
		p.open[id] = g
		g.place = p.order.PushBack(g)
		g.bytes = groupCost + int64(len(id.tenant)+len(id.group))
		s.open++
		s.bytes += g.bytes
	}
	was := g.bytes
	if !g.add(r, at) {
		s.Observer.Late("repeated")
	}
	if g.ended && (g.asked || g.past != nil && g.past.asked) {
		s.ended[id.tenant] = at
	}
	s.bytes += g.bytes - was
}

// oldest is the open group that was begun first.
func (s *session) oldest() (found *group) {
	for _, p := range s.parts {
		for e := p.order.Front(); e != nil; e = e.Next() {
			g := e.Value.(*group)
			if p.open[g.id] != g { // closed, waits to be told
				continue
			}
			if found == nil || g.began.Before(found.began) {
				found = g
			}
			break
		}
	}
	return found
}

// isOver tells whether the group has waited long enough: since its last part, and since its first.
func (s *session) isOver(g *group, last, begun time.Duration) bool {
	window, most := s.cfg.Window, longest
	awaited := g.asked && s.tellsEnds(g.id.tenant)
	if awaited || g.grows {
		most = growing
	}
	if awaited && !g.ended {
		window = growing
	}
	return last >= window || begun >= most
}

// tellsEnds says whether it was told lately how a tenant's calls end. Where nobody does, as where a guard alone is asked, nothing is to be waited for.
func (s *session) tellsEnds(tenant string) bool {
	came, ok := s.ended[tenant]
	return ok && s.Now().Sub(came) < awaiting
}

// sweep closes the groups whose time is over: by the broker's clock, as the log goes on; by ours once the log has
// nothing more. A log that is read late closes nothing early by that.
func (s *session) sweep(p *partition, f fetched) {
	if least := s.cfg.Window / 64; f.asked.Sub(p.swept[0]) < least && p.clock.Sub(p.swept[1]) < least {
		return
	}
	p.swept = [2]time.Time{f.asked, p.clock}
	caughtUp := f.Next >= f.End
	for e := p.order.Front(); e != nil; e = e.Next() {
		g := e.Value.(*group)
		over := s.isOver(g, p.clock.Sub(g.last), p.clock.Sub(g.begun)) || caughtUp && s.isOver(g, f.asked.Sub(g.lastAt), f.asked.Sub(g.began))
		if over && p.open[g.id] == g {
			s.close(g)
		}
	}
}

package alarm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
)

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func at(hour int) time.Time { return begin.Add(time.Duration(hour) * time.Hour) }

func policies(t testing.TB, yaml string) *Policies {
	t.Helper()
	if yaml != "" {
		yaml = "version: 1\n" + yaml
	}
	p, err := ParsePolicies([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// world is a tenant's domain hr: so many analysed interactions an hour, and by kind a function of the
// hour that says how many have it.
type world struct {
	hours, n int
	kinds    map[string]func(hour int) int
	ruleSet  func(hour int) string
	received func(hour int) int // as n when nil
	rules    map[string]map[string]string
}

const sex = "charter.sex"

// usual is one in a hundred until an hour, then so many.
func usual(until, then int) func(int) int {
	return func(hour int) int {
		if hour < until {
			return 1
		}
		return then
	}
}

// between is so many from an hour to another, else one.
func between(from, to, k int) func(int) int {
	return func(hour int) int {
		if hour >= from && hour < to {
			return k
		}
		return 1
	}
}

func (w *world) history() *History {
	h := NewHistory(begin, w.hours, w.rules)
	for i := range w.hours {
		set, received := "r1", w.n
		if w.ruleSet != nil {
			set = w.ruleSet(i)
		}
		if w.received != nil {
			received = w.received(i)
		}
		h.Analysed("acme", audit.HR, set, at(i), uint64(w.n), 0)
		h.Received("acme", audit.HR, at(i), int64(received), int64(w.n))
		for name, k := range w.kinds {
			h.Found(Cell{"acme", audit.HR, name}, set, at(i), uint64(k(i)), 0)
		}
	}
	return h
}

// drive evaluates each hour whose end is in [from, to], decides what is wanted at once, and tells it:
// "hour state reason kind#generation.seq". hook may add to what was decided.
func drive(h *History, p *Policies, from, to int, hook func(hour int, done []audit.Breach) []audit.Breach) []string {
	var done []audit.Breach
	var told []string
	for i := from; i <= to; i++ {
		if hook != nil {
			done = hook(i, done)
		}
		for _, b := range Evaluate(Input{History: h, Policies: p, At: at(i), Transitions: done}).Transitions {
			b.Changed = at(i)
			done = append(done, b)
			told = append(told, tell(i, &b))
		}
	}
	return told
}

func tell(hour int, b *audit.Breach) string {
	name := b.Kind
	if name == "" {
		name = "any"
	}
	if b.Group != "" {
		name += "/" + b.Group
	}
	return fmt.Sprintf("%d %s %s %s#%d.%d", hour, b.State, b.Reason, name, b.Generation, b.Seq)
}

func wants(t *testing.T, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// The short window alone, so that hours can be counted by hand: of 2,400 a day 24 are usual.
const short24 = "defaults: {ticket: {long_window: 0h}}\n"

const day = 24

func one(k func(int) int) *world {
	return &world{hours: 80 * day, n: 100, kinds: map[string]func(int) int{sex: k}}
}

func TestOpensRepeatsAndResolves(t *testing.T) {
	const rise, fall = 40 * day, 43 * day
	h := one(between(rise, fall, 3)).history()
	got := drive(h, policies(t, short24), 30*day, 60*day, nil)
	// After six hours the last day has 36 of 2,400 at 1 %, p = 0.013; after seven 38, p = 0.005. And one more in a row.
	wants(t, got,
		"968 open breached charter.sex#1.1",
		"992 open repeated charter.sex#1.2",
		"1016 open repeated charter.sex#1.3",
		"1040 open repeated charter.sex#1.4", // the last day still holds risen hours
		// 24 of 2,400 has an upper bound of 1.48 %: near from the hour on at which the last day is usual, then for a day.
		"1079 resolved near_baseline charter.sex#1.5")
}

func TestTwoInARow(t *testing.T) {
	h := one(usual(40*day, 3)).history()
	for _, tc := range []struct {
		row  int
		want string
	}{{1, "967"}, {2, "968"}, {3, "969"}} {
		got := drive(h, policies(t, fmt.Sprintf("defaults: {ticket: {long_window: 0h, in_a_row: %d}}", tc.row)), 30*day, 41*day, nil)
		wants(t, got, tc.want+" open breached charter.sex#1.1")
	}
	// One hour alone is not enough.
	spike := one(nil)
	spike.kinds[sex] = func(hour int) int {
		switch hour {
		case 40 * day:
			return 13
		case 40*day - 23:
			return 2 // leaves the window after one evaluation
		}
		return 1
	}
	wants(t, drive(spike.history(), policies(t, "defaults: {ticket: {long_window: 0h, in_a_row: 1}}"), 30*day, 60*day, nil),
		"961 open breached charter.sex#1.1", "1008 resolved near_baseline charter.sex#1.2")
	wants(t, drive(spike.history(), policies(t, short24), 30*day, 60*day, nil))
}

// Cells of other tenants that were not tested, for they are learning or have too little traffic, keep no breach back; those that were do.
func TestCorrectedOverTestedCells(t *testing.T) {
	const rise = 40 * day
	for name, c := range map[string]struct {
		from, n int // of the others' traffic: the first hour, and how much an hour
		opens   bool
	}{
		"alone":                      {80 * day, 0, true},
		"others learn":               {rise - 2*day, 8, true},
		"others have too few for it": {0, 1, true},
		"others are tested":          {0, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{hours: 44 * day, n: 100, kinds: map[string]func(int) int{sex: usual(rise, 2)}}
			h := w.history()
			for i := range 1000 {
				tenant := fmt.Sprintf("other-%04d", i)
				for hour := c.from; hour < w.hours; hour++ {
					h.Analysed(tenant, audit.HR, "r1", at(hour), uint64(c.n), 0)
					h.Received(tenant, audit.HR, at(hour), int64(c.n), int64(c.n))
				}
				if c.from < w.hours {
					h.Found(Cell{tenant, audit.HR, sex}, "r1", at(c.from), 1, 0)
				}
			}
			got := Evaluate(Input{History: h, Policies: policies(t, short24), At: at(rise + 18)})
			if opens := len(got.Transitions) == 1 && got.Transitions[0].Tenant == "acme"; opens != c.opens {
				t.Errorf("opened %v, want %v; %+v", opens, c.opens, got.Figures)
			}
		})
	}
}

func TestFloorsOfATicket(t *testing.T) {
	for _, tc := range []struct {
		name  string
		n, k  int // in the newest hour, of a domain that is quiet before
		opens bool
	}{{"30 with 4", 30, 4, true}, {"29 with 4", 29, 4, false}, {"30 with 2", 30, 2, false}, {"31 with 3", 31, 3, true}} {
		t.Run(tc.name, func(t *testing.T) {
			h := NewHistory(begin, 40*day, nil)
			cell := Cell{"acme", audit.HR, sex}
			for i := range 30 * day {
				h.Analysed("acme", audit.HR, "r1", at(i), 10, 0)
			}
			h.Found(cell, "r1", at(0), 1, 0)
			h.Analysed("acme", audit.HR, "r1", at(39*day), uint64(tc.n), 0)
			h.Found(cell, "r1", at(39*day), uint64(tc.k), 0)
			r := Evaluate(Input{History: h, Policies: policies(t, "defaults: {ticket: {long_window: 0h}}"), At: at(39*day + 2)})
			if got := len(r.Transitions) == 1; got != tc.opens {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestMinRatio(t *testing.T) {
	w := one(func(hour int) int {
		if hour < 40*day {
			return 1000
		}
		return 1100 // far beyond doubt, and a tenth more
	})
	w.n = 100_000
	wants(t, drive(w.history(), policies(t, short24), 39*day, 45*day, nil))
	wants(t, drive(w.history(), policies(t, "defaults: {ticket: {long_window: 0h, min_ratio: 1}}"), 39*day, 40*day+12, nil), "965 open breached charter.sex#1.1") // 400 more are 2.6 standard deviations
}

// After a resolution nothing opens for a day; what then comes within a week is the same breach.
func TestCooldown(t *testing.T) {
	h := one(usual(40*day, 4)).history()
	resolved := func(hoursAgo int) func(int, []audit.Breach) []audit.Breach {
		return func(hour int, done []audit.Breach) []audit.Breach {
			if hour != 42*day {
				return done
			}
			b := gone(policies(t, short24), audit.BreachResolved, at(hour-hoursAgo))
			return append(done, b)
		}
	}
	for _, tc := range []struct {
		ago   int
		first string
	}{
		{0, "1032 open returned charter.sex#1.3"},
		{20, "1012 open returned charter.sex#1.3"},
		{23, "1009 open returned charter.sex#1.3"},
		{24, "1008 open returned charter.sex#1.3"},
	} {
		got := drive(h, policies(t, short24), 42*day, 43*day, resolved(tc.ago))
		wants(t, got[:1], tc.first)
	}
}

// gone is the newest transition of a breach of charter.sex that ended then.
func gone(p *Policies, state audit.BreachState, when time.Time) audit.Breach {
	c := Cell{"acme", audit.HR, sex}
	return audit.Breach{ID: BreachID(p.For(c).Name, c, "", 1), Seq: 2, Tenant: c.Tenant, Policy: p.For(c).Name, Tier: audit.TierRate, Domain: c.Domain, Kind: c.Kind,
		Generation: 1, State: state, Reason: ReasonNearBaseline, Opened: when.Add(-48 * time.Hour), From: when.Add(-72 * time.Hour), To: when, Changed: when, Baseline: 0.01}
}

func TestReopensWithinAWeek(t *testing.T) {
	p := policies(t, short24)
	h := one(usual(40*day, 4)).history()
	const now = 41 * day
	for _, tc := range []struct {
		hoursAgo int
		want     string
	}{
		{7*day - 1, "984 open returned charter.sex#1.3"},
		{7 * day, "984 open returned charter.sex#1.3"},
		{7*day + 1, "984 open breached charter.sex#2.1"},
	} {
		b := gone(p, audit.BreachResolved, at(now-tc.hoursAgo))
		r := Evaluate(Input{History: h, Policies: p, At: at(now), Transitions: []audit.Breach{b}})
		if len(r.Transitions) != 1 {
			t.Fatalf("%d hours ago: %+v", tc.hoursAgo, r)
		}
		next := r.Transitions[0]
		wants(t, []string{tell(now, &next)}, tc.want)
		if same := next.ID == b.ID; same != (next.Generation == 1) || next.Opened != at(now) {
			t.Errorf("%d hours ago: %+v", tc.hoursAgo, next)
		}
	}
	// Within the minutes that a broker's time lies after the hour nothing changes.
	b := gone(p, audit.BreachResolved, at(now-7*day).Add(12*time.Minute))
	if r := Evaluate(Input{History: h, Policies: p, At: at(now), Transitions: []audit.Breach{b}}); r.Transitions[0].Generation != 1 {
		t.Errorf("%+v", r.Transitions)
	}
}

// A ticket was closed: only hours after that can bring the breach back, and a quiet day ends it.
func TestMitigatedIsWatched(t *testing.T) {
	p := policies(t, short24)
	const closed = 43 * day
	hook := func(hour int, done []audit.Breach) []audit.Breach {
		if hour == closed {
			b := done[len(done)-1]
			b.Seq, b.State, b.Reason, b.Changed = b.Seq+1, audit.BreachMitigated, "completed", at(hour)
			done = append(done, b)
		}
		return done
	}
	// Mended at once: the last day before the ticket was closed is not held against it.
	got := drive(one(between(40*day, closed, 4)).history(), p, 39*day, 50*day, hook)
	wants(t, got[len(got)-1:], "1056 resolved near_baseline charter.sex#1.5")
	// Not mended: it comes back as soon as the hours since then say so.
	got = drive(one(usual(40*day, 4)).history(), p, 39*day, closed+day, hook)
	wants(t, got[len(got)-1:], "1035 open returned charter.sex#1.5")
}

// What ends a breach of any bias covers its kinds for its hours: they do not come as breaches of their own in its place. A kind
// that rises later does.
func TestAnswerCoversKinds(t *testing.T) {
	const rise, answered = 40 * day, 41 * day
	end := func(state audit.BreachState, reason string) func(int, []audit.Breach) []audit.Breach {
		return func(hour int, done []audit.Breach) []audit.Breach {
			if hour == answered {
				b := done[len(done)-1]
				b.Seq, b.State, b.Reason, b.Changed = b.Seq+1, state, reason, at(hour)
				done = append(done, b)
			}
			return done
		}
	}
	both := func(any, kind func(int) int) *History {
		w := one(kind)
		w.kinds[""] = any
		return w.history()
	}
	mended, lasting := between(rise, answered, 4), usual(rise, 4)
	p := policies(t, short24)
	for name, tc := range map[string]struct {
		state     audit.BreachState
		reason    string
		any, kind func(int) int
		to        int
		want      []string
	}{
		"ticket closed, mended":      {audit.BreachMitigated, "completed", mended, mended, 44 * day, []string{"1008 resolved near_baseline any#1.3"}},
		"ticket closed, not mended":  {audit.BreachMitigated, "completed", lasting, lasting, 42 * day, []string{"987 open returned any#1.3"}},
		"by a person, mended":        {audit.BreachResolved, "fixed", mended, mended, 44 * day, []string{}},
		"by a person, not mended":    {audit.BreachResolved, "fixed", lasting, lasting, 42*day + 12, []string{"1008 open returned any#1.3"}},
		"accepted":                   {audit.BreachResolved, ReasonAccepted, lasting, lasting, 50 * day, []string{}},
		"the kind rises later alone": {audit.BreachMitigated, "completed", mended, func(hour int) int { return mended(hour) + usual(46*day, 4)(hour) - 1 }, 47*day - 1, []string{"1008 resolved near_baseline any#1.3", "1110 open breached charter.sex#1.1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := drive(both(tc.any, tc.kind), p, 39*day, tc.to, end(tc.state, tc.reason))
			wants(t, got[1:], tc.want...) // the first opened it
		})
	}
}

// A closed ticket on a rate has told of the mitigations in its window, too.
func TestAnswerCoversMitigations(t *testing.T) {
	p := policies(t, "")
	h := one(usual(80*day, 1)).history()
	b := gone(p, audit.BreachMitigated, at(41*day))
	b.Kind = ""
	m := Mitigated{Cell: Cell{"acme", audit.HR, sex}, N: 1000, K: 60, Mitigation: audit.MitigationRephrase, Window: 168 * time.Hour}
	for hour, want := range map[int]int{41*day + 1: 0, 47 * day: 0, 48 * day: 1} {
		var opened int
		for _, x := range Evaluate(Input{History: h, Policies: p, At: at(hour), Transitions: []audit.Breach{b}, Mitigations: []Mitigated{m}}).Transitions {
			if x.Group == groupMitigation {
				opened++
			}
		}
		if opened != want {
			t.Errorf("%d hours after: %d", hour-41*day, opened)
		}
	}
}

func TestDomainMutesItsKinds(t *testing.T) {
	w := one(usual(40*day, 4))
	w.kinds[""] = usual(40*day, 4)
	w.kinds["safety.violence"] = usual(40*day, 4)
	p := policies(t, short24)
	got := drive(w.history(), p, 39*day, 41*day-1, nil)
	wants(t, got, "966 open breached any#1.1", "966 open breached safety.violence#1.1")
	r := Evaluate(Input{History: w.history(), Policies: p, At: at(41 * day)})
	if r.Figures.Muted != 1 || r.Figures.Opened != 2 || r.Figures.Open != 2 || r.Figures.Cells != 3 {
		t.Errorf("%+v", r.Figures)
	}
}

func TestBlindMutesRates(t *testing.T) {
	w := one(usual(40*day, 4))
	p := policies(t, short24)
	for _, tc := range []struct {
		received int
		want     []string
	}{
		{111, []string{"966 open breached charter.sex#1.1"}}, // 90.1 %
		{112, []string{"982 open breached any/coverage#1.1"}},
	} {
		w.received = func(hour int) int {
			if hour < 40*day-1 {
				return 100
			}
			return tc.received
		}
		got := drive(w.history(), p, 39*day, 41*day-1, func(hour int, done []audit.Breach) []audit.Breach { return done })
		if tc.received == 112 { // the rate is seen before a day of missing coverage is
			got = got[1:]
		}
		wants(t, got, tc.want...)
	}
	// Where nothing can be believed nothing opens.
	w.received = func(int) int { return 120 }
	got := drive(w.history(), p, 39*day, 41*day, nil)
	wants(t, got, "936 open breached any/coverage#1.1", "960 open repeated any/coverage#1.2", "984 open repeated any/coverage#1.3")
	// And it ends at 95 %.
	w.received = func(hour int) int {
		if hour < 40*day {
			return 120
		}
		return 100
	}
	w.kinds[sex] = usual(40*day, 1)
	got = drive(w.history(), p, 40*day, 41*day, nil)
	wants(t, got, "960 open breached any/coverage#1.1", "978 resolved near_baseline any/coverage#1.2")
}

// Whoever resolves a breach of coverage has no new one of the same hours, and a closed ticket is watched for as long as it takes.
func TestBlindAfterPeople(t *testing.T) {
	w := one(func(int) int { return 0 })
	p := policies(t, short24)
	until := func(hour int) func(int) int {
		return func(i int) int {
			if i < hour {
				return 120
			}
			return 100
		}
	}
	ends := func(hour int, state audit.BreachState, reason string) func(int, []audit.Breach) []audit.Breach {
		return func(i int, done []audit.Breach) []audit.Breach {
			if i == hour {
				b := done[len(done)-1]
				b.Seq, b.State, b.Reason, b.Changed = b.Seq+1, state, reason, at(hour).Add(12*time.Minute)
				done = append(done, b)
			}
			return done
		}
	}
	for _, reason := range []string{"fixed", "noise", ReasonAccepted} {
		w.received = until(41 * day)
		wants(t, drive(w.history(), p, 40*day, 43*day, ends(41*day, audit.BreachResolved, reason)), "960 open breached any/coverage#1.1")
		w.received = until(1 << 20) // not mended: the day after says so
		got := drive(w.history(), p, 41*day-1, 42*day, ends(41*day, audit.BreachResolved, reason))
		wants(t, got, "983 open breached any/coverage#1.1", "1008 open returned any/coverage#1.3")
	}
	// Half mended, above what opens and below what resolves, for longer than breaches return; then it falls again.
	w.received = func(i int) int {
		if i >= 41*day && i < 50*day {
			return 107
		}
		return 120
	}
	got := drive(w.history(), p, 41*day, 51*day, ends(41*day+1, audit.BreachMitigated, "completed"))
	if len(got) != 2 || !strings.HasSuffix(got[1], " open returned any/coverage#1.3") {
		t.Error(got)
	}
}

// Of a new version of the rules the past says nothing: no alarm, however the rate jumps, and a new
// baseline from then on.
func TestNewRulesBeginAnew(t *testing.T) {
	const change = 40 * day
	w := one(usual(change, 8))
	w.ruleSet = func(hour int) string {
		if hour < change {
			return "r1"
		}
		return "r2"
	}
	p := policies(t, short24)
	wants(t, drive(w.history(), p, 39*day, 60*day, nil))
	r := Evaluate(Input{History: w.history(), Policies: p, At: at(change + 3)})
	if r.Figures.Learning != 1 || r.Figures.Cells != 0 {
		t.Errorf("%+v", r.Figures)
	}
	if r := Replay(w.history(), p, at(39*day), at(change+3), false, func() bool { return false }); r.Cells != 1 || r.Learning != 1 || r.Hours != 28 {
		t.Errorf("%d cells, %d learning in %d hours", r.Cells, r.Learning, r.Hours)
	}
	imported := NewHistory(begin, 48, nil)
	for i := range 48 {
		imported.Analysed("acme", audit.HR, "r1", at(i), 1, 10)
		imported.Analysed("acme", audit.Finance, "r2", at(i), 0, 1)
	}
	for _, tc := range []struct {
		from, to int
		want     uint64
	}{{0, 48, 528}, {-5, 60, 528}, {10, 12, 22}, {12, 12, 0}, {50, 60, 0}} {
		if got := imported.Late(at(tc.from), at(tc.to)); got != tc.want {
			t.Errorf("late from %d to %d: %d, not %d", tc.from, tc.to, got, tc.want)
		}
	}
	if r := Replay(NewHistory(begin, 48, nil), p, at(0), at(24), false, func() bool { return false }); r.Cells+r.Learning != 0 || r.Hours != 25 {
		t.Errorf("of nothing: %+v", r)
	}
	// A rule set that changed other kinds only is the same version.
	w.rules = map[string]map[string]string{"r1": {sex: "3", "charter.age": "1"}, "r2": {sex: "3", "charter.age": "2"}}
	wants(t, drive(w.history(), p, 39*day, 40*day+12, nil), "963 open breached charter.sex#1.1")
	// Any bias has a new version when any kind of bias has.
	w.kinds = map[string]func(int) int{"": usual(change, 8)}
	wants(t, drive(w.history(), p, 39*day, 60*day, nil))
	w.rules["r2"]["charter.age"] = "1"
	w.rules["r2"]["safety.violence"] = "9"
	wants(t, drive(w.history(), p, 39*day, 40*day+12, nil), "963 open breached any#1.1")
	// A breach of the old rules ends with them.
	w = one(func(hour int) int { return map[bool]int{true: 1, false: 8}[hour < change-2*day] })
	w.ruleSet = func(hour int) string { return map[bool]string{true: "r1", false: "r2"}[hour < change] }
	old := drive(w.history(), p, 37*day, change+10*day, nil)
	if want := "961 resolved rules_changed charter.sex#1.3"; len(old) != 3 || old[2] != want {
		t.Errorf("%v, want %s at last", old, want)
	}
	// After a day of the new rules its rate is the usual one, and a rise is seen again.
	w = one(func(hour int) int {
		return map[bool]int{true: 1, false: 8}[hour < change] + map[bool]int{true: 12}[hour >= change+3*day]
	})
	w.ruleSet = func(hour int) string { return map[bool]string{true: "r1", false: "r2"}[hour < change] }
	got := drive(w.history(), p, 39*day, change+4*day, nil)
	if len(got) != 1 || !strings.Contains(got[0], "open breached") {
		t.Error(got)
	}
}

// The window of a breach is not part of the baseline, however long it lasts, and what a person accepted is.
func TestBaselineLeavesBreachesOut(t *testing.T) {
	p := policies(t, short24)
	h := one(usual(30*day, 5)).history()
	var done []audit.Breach
	drive(h, p, 29*day, 75*day, func(_ int, d []audit.Breach) []audit.Breach { done = d; return d })
	last := done[len(done)-1]
	if last.State != audit.BreachOpen || last.Baseline != 0.01 || last.Seq < 40 {
		t.Errorf("a breach that lasts 45 days: %+v", last)
	}
	accepted := func(hour int, d []audit.Breach) []audit.Breach {
		if hour == 35*day {
			b := d[len(d)-1]
			b.Seq, b.State, b.Reason, b.Changed = b.Seq+1, audit.BreachResolved, ReasonAccepted, at(hour)
			d = append(d, b)
		}
		return d
	}
	got := drive(h, p, 29*day, 60*day, accepted)
	for _, s := range got {
		if strings.Fields(s)[0] > fmt.Sprint(35*day) {
			t.Errorf("after it was accepted: %s", s)
		}
	}
}

// Of a breach that ended long ago only its last transition is read.
func TestAcceptedLongAgo(t *testing.T) {
	b := gone(policies(t, short24), audit.BreachResolved, at(-100*day))
	b.Reason = ReasonAccepted
	r := Evaluate(Input{History: one(usual(40*day, 4)).history(), Policies: policies(t, short24), At: at(41 * day), Transitions: []audit.Breach{b}})
	if len(r.Transitions) != 1 || r.Transitions[0].Generation != 2 {
		t.Errorf("%+v", r)
	}
}

// An hour that is being recomputed may show more found than analysed: what is wanted stays JSON.
func TestMoreFoundThanAnalysed(t *testing.T) {
	w := one(usual(40*day, 500))
	for _, p := range []*Policies{policies(t, ""), policies(t, "defaults: {cusum: {h: 1}, ticket: {q: 0.0001}}")} {
		r := Evaluate(Input{History: w.history(), Policies: p, At: at(41 * day)})
		if len(r.Transitions) != 1 {
			t.Fatalf("%+v", r)
		}
		if _, err := json.Marshal(r.Transitions[0]); err != nil || r.Transitions[0].K != r.Transitions[0].N {
			t.Errorf("%v %+v", err, r.Transitions[0])
		}
	}
}

func TestPolicyThatHoldsNoMore(t *testing.T) {
	h := one(usual(40*day, 4)).history()
	b := gone(policies(t, short24), audit.BreachOpen, at(41*day-30))
	off := policies(t, "policies: [{name: quiet, domain: hr, off: true}]")
	r := Evaluate(Input{History: h, Policies: off, At: at(41 * day), Transitions: []audit.Breach{b}})
	if len(r.Transitions) != 1 {
		t.Fatalf("%+v", r)
	}
	wants(t, []string{tell(0, &r.Transitions[0])}, "0 resolved policy_changed charter.sex#1.3")
	if r.Figures.Cells != 0 || len(r.Warnings) != 0 {
		t.Errorf("%+v", r.Figures)
	}
}

// A cell of which nothing is counted any more cannot come near its baseline.
func TestCellThatIsGone(t *testing.T) {
	p := policies(t, "")
	b := gone(p, audit.BreachOpen, at(30*day))
	b.Kind = "charter.age"
	b.ID = BreachID("default", Cell{"acme", audit.HR, b.Kind}, "", 1)
	h := one(usual(1<<20, 1)).history()
	for _, tc := range []struct {
		hour int
		want []string
	}{{37 * day, nil}, {37*day + 1, []string{"889 resolved no_traffic charter.age#1.3"}}} {
		var got []string
		for _, x := range Evaluate(Input{History: h, Policies: p, At: at(tc.hour), Transitions: []audit.Breach{b}}).Transitions {
			got = append(got, tell(tc.hour, &x))
		}
		wants(t, got, tc.want...)
	}
}

func TestWarnings(t *testing.T) {
	h := one(usual(40*day, 3)).history()
	p := policies(t, short24)
	first := 0
	for i := 40 * day; i < 41*day && first == 0; i++ {
		r := Evaluate(Input{History: h, Policies: p, At: at(i)})
		if len(r.Warnings) > 0 {
			first = i
			if w := r.Warnings[0]; w.K != uint64(24+2*(i-40*day)) || w.N != 2400 || w.Baseline < 0.0099 || w.Baseline > 0.0101 {
				t.Errorf("%+v", r)
			}
		}
	}
	if first != 40*day+12 { // 48 of 2,400: a lower bound of 1.29 %; 46 have 1.22 %, and 1.25 are asked for
		t.Errorf("the first warning comes at hour %d", first-40*day)
	}
}

func TestCusumFindsWhatTestsDoNot(t *testing.T) {
	w := one(usual(40*day, 2))
	w.n = 40 // 2.5 % to 5 %
	none := policies(t, "defaults: {ticket: {long_window: 0h, q: 0.000000001}}")
	wants(t, drive(w.history(), none, 39*day, 46*day, nil))
	summed := policies(t, "defaults: {ticket: {long_window: 0h, q: 0.000000001}, cusum: {h: 13.8, ratio: 2}}")
	got := drive(w.history(), summed, 39*day, 46*day, nil)
	if len(got) == 0 || !strings.Contains(got[0], "open breached") {
		t.Error(got)
	}
}

func critical(kind string, event byte, hour int, confirmed bool) Critical {
	return Critical{Cell{"acme", audit.HR, kind}, audit.ID{event}, "sex.slur", confirmed, "rita", at(hour), at(hour - 5)}
}

func TestOneConfirmedCriticalFinding(t *testing.T) {
	h := one(usual(1<<20, 1)).history()
	p := policies(t, "")
	look := func(hour int, p *Policies, done []audit.Breach, cs ...Critical) []audit.Breach {
		return Evaluate(Input{History: h, Policies: p, At: at(hour), Transitions: done, Critical: cs}).Transitions
	}
	if got := look(40*day, p, nil, critical(sex, 1, 40*day, false)); len(got) != 0 {
		t.Errorf("unconfirmed: %+v", got)
	}
	if got := look(40*day, policies(t, "defaults: {critical: {unconfirmed: true}}"), nil, critical(sex, 1, 40*day, false)); len(got) != 1 {
		t.Errorf("unconfirmed, as the policy wants: %+v", got)
	}
	a := look(40*day, p, nil, critical(sex, 1, 40*day, true))
	if len(a) != 1 {
		t.Fatalf("%+v", a)
	}
	wants(t, []string{tell(960, &a[0])}, "960 open breached charter.sex/critical#1.1")
	if a[0].Tier != audit.TierPolicy || a[0].Severity != audit.Critical || !slices.Equal(a[0].Events, []audit.ID{{1}}) || a[0].TopRules[0].Rule != "sex.slur" || a[0].K != 1 {
		t.Errorf("%+v", a[0])
	}
	if a[0].From != at(40*day-5) || a[0].To != at(40*day-5).Add(time.Second) {
		t.Errorf("links lead from %v to %v", a[0].From, a[0].To)
	}
	a[0].Changed = at(40 * day).Add(time.Minute)
	if got := look(40*day+1, p, a, critical(sex, 1, 40*day, true)); len(got) != 0 {
		t.Errorf("the same finding again: %+v", got)
	}
	both := []Critical{critical(sex, 1, 40*day, true), critical(sex, 2, 40*day+2, true)}
	if got := look(40*day+3, p, a, both...); len(got) != 0 {
		t.Errorf("news within a day: %+v", got)
	}
	got := look(41*day, p, a, both...)
	if len(got) != 1 || got[0].Reason != ReasonRepeated || got[0].Seq != 2 || !slices.Equal(got[0].Events, []audit.ID{{2}}) {
		t.Errorf("news after a day: %+v", got)
	}
	closed := a[0]
	closed.Seq, closed.State, closed.Changed = 2, audit.BreachMitigated, at(42*day)
	if got := look(49*day, p, []audit.Breach{a[0], closed}, both...); len(got) != 0 {
		t.Errorf("watched for a week: %+v", got)
	}
	got = look(49*day+1, p, []audit.Breach{a[0], closed}, both...)
	if len(got) != 1 || got[0].State != audit.BreachResolved || got[0].Reason != ReasonQuiet {
		t.Errorf("quiet for a week: %+v", got)
	}
	got = look(44*day, p, []audit.Breach{a[0], closed}, append(both, critical(sex, 3, 43*day, true))...)
	if len(got) != 1 || got[0].Reason != ReasonReturned || got[0].ID != a[0].ID || got[0].Seq != 3 {
		t.Errorf("it came back: %+v", got)
	}
}

func TestFrequentMitigation(t *testing.T) {
	h := one(usual(1<<20, 1)).history()
	p := policies(t, "")
	for _, tc := range []struct {
		k, n  uint64
		late  uint64
		opens bool
	}{{4, 100, 0, false}, {5, 250, 0, true}, {5, 251, 0, false}, {5, 100, 0, true}, {100, 10_000, 0, false}, {200, 10_000, 0, true},
		{6, 283, 725, false}, {6, 283, 284, false}, {6, 283, 283, true}} { // an import, most of which came late, opens nothing
		m := Mitigated{Cell: Cell{"acme", audit.Finance, "charter.age"}, N: tc.n, K: tc.k, Late: tc.late, Mitigation: audit.MitigationRephrase, Window: 168 * time.Hour}
		got := Evaluate(Input{History: h, Policies: p, At: at(40 * day), Mitigations: []Mitigated{m}}).Transitions
		if (len(got) == 1) != tc.opens || tc.opens && (got[0].Tier != audit.TierMitigation || got[0].Mitigation != audit.MitigationRephrase || got[0].To.Sub(got[0].From) != 168*time.Hour) {
			t.Errorf("%+v: %+v", tc, got)
		}
		if !tc.opens {
			continue
		}
		got[0].Changed = at(40 * day)
		if more := Evaluate(Input{History: h, Policies: p, At: at(40*day + 5), Transitions: got, Mitigations: []Mitigated{m}}).Transitions; len(more) != 0 {
			t.Errorf("again within a day: %+v", more)
		}
		if more := Evaluate(Input{History: h, Policies: p, At: at(40*day + 5), Transitions: got}).Transitions; len(more) != 0 {
			t.Errorf("not looked at: %+v", more)
		}
		for _, ended := range []struct {
			reason string
			after  int // days
			back   bool
		}{{"fixed", 6, false}, {"noise", 6, false}, {ReasonAccepted, 6, false}, {"fixed", 7, true}, {ReasonNearBaseline, 0, false}, {ReasonNearBaseline, 1, true}} {
			b := got[0]
			b.Seq, b.State, b.Reason = 2, audit.BreachResolved, ended.reason
			more := Evaluate(Input{History: h, Policies: p, At: at((40 + ended.after) * day), Transitions: []audit.Breach{got[0], b}, Mitigations: []Mitigated{m}}).Transitions
			if (len(more) == 1) != ended.back {
				t.Errorf("%+v: %+v", ended, more)
			}
		}
		end := Evaluate(Input{History: h, Policies: p, At: at(45 * day), Transitions: got, Mitigations: []Mitigated{}}).Transitions
		if len(end) != 1 || end[0].State != audit.BreachResolved {
			t.Errorf("none left: %+v", end)
		}
	}
}

func TestBreachesHaveStableIDs(t *testing.T) {
	c := Cell{"acme", audit.HR, sex}
	seen := map[audit.ID]bool{}
	for _, id := range []audit.ID{BreachID("default", c, "", 1), BreachID("default", c, "", 2), BreachID("default", c, groupCritical, 1), BreachID("other", c, "", 1), BreachID("default", Cell{"acme", audit.HR, ""}, "", 1)} {
		if seen[id] || id[6]>>4 != 4 {
			t.Error(id)
		}
		seen[id] = true
	}
	if got := BreachID("default", c, "", 1); got != audit.DerivedV4("breach", "acme", "default", "hr", sex, "", "1") {
		t.Error(got)
	}
}

// scene is a drawn past: cells with rates, some of which rise.
type scene struct {
	hours int
	cells []struct {
		c     Cell
		n     int
		rate  int // hours between two findings
		rise  int
		early bool
	}
}

func (s *scene) history(order []int, rises bool) *History {
	h := NewHistory(begin, s.hours, nil)
	for _, i := range order {
		c := s.cells[i]
		for hour := range s.hours {
			if c.c.Kind == "" { // once a domain
				h.Analysed(c.c.Tenant, c.c.Domain, "r1", at(hour), uint64(c.n), 0)
				h.Received(c.c.Tenant, c.c.Domain, at(hour), int64(c.n), int64(c.n))
			}
			k := 0
			if hour%c.rate == 0 {
				k = 1
			}
			if rises && hour >= s.hours-30 {
				k *= c.rise
			}
			h.Found(c.c, "r1", at(hour), uint64(k), 0)
		}
	}
	return h
}

func drawScene(t *rapid.T) *scene {
	s := &scene{hours: 34 * day}
	for tenant := range rapid.IntRange(1, 3).Draw(t, "tenants") {
		for _, d := range audit.Domains[:rapid.IntRange(1, 3).Draw(t, "domains")] {
			n := rapid.IntRange(5, 60).Draw(t, "n")
			for _, kind := range []string{"", "charter.age", sex, "safety.violence"} {
				s.cells = append(s.cells, struct {
					c     Cell
					n     int
					rate  int
					rise  int
					early bool
				}{c: Cell{fmt.Sprint("t", tenant), d, kind}, n: n, rate: rapid.IntRange(1, 30).Draw(t, "every"), rise: rapid.IntRange(0, 5).Draw(t, "rise")})
			}
		}
	}
	return s
}

func TestOrderOfCellsChangesNothing(t *testing.T) {
	p := policies(t, "")
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		order := make([]int, len(s.cells))
		for i := range order {
			order[i] = i
		}
		other := rapid.Permutation(order).Draw(t, "order")
		var transitions []audit.Breach
		a := Evaluate(Input{History: s.history(order, true), Policies: p, At: at(s.hours), Transitions: transitions})
		b := Evaluate(Input{History: s.history(other, true), Policies: p, At: at(s.hours), Transitions: transitions})
		if d := cmp.Diff(a, b); d != "" {
			t.Fatal(d)
		}
		// The same with what was decided, in another order.
		for i := range a.Transitions {
			a.Transitions[i].Changed = at(s.hours)
		}
		back := slices.Clone(a.Transitions)
		slices.Reverse(back)
		x := Evaluate(Input{History: s.history(order, true), Policies: p, At: at(s.hours), Transitions: a.Transitions})
		y := Evaluate(Input{History: s.history(other, true), Policies: p, At: at(s.hours), Transitions: back})
		if d := cmp.Diff(x, y); d != "" || len(x.Transitions) > 0 {
			t.Fatalf("%s\nwanted again: %+v", d, x.Transitions)
		}
	})
}

func TestNothingAlarmsAtOrBelowItsBaseline(t *testing.T) {
	p := policies(t, "defaults: {ticket: {min_ratio: 1, q: 0.5}, cusum: {h: 5, ratio: 1.2}}")
	rapid.Check(t, func(t *rapid.T) {
		s := drawScene(t)
		for i := range s.cells {
			s.cells[i].rise = min(s.cells[i].rise, 1)
		}
		order := make([]int, len(s.cells))
		for i := range order {
			order[i] = i
		}
		h := s.history(order, true)
		for _, b := range Evaluate(Input{History: h, Policies: p, At: at(s.hours)}).Transitions {
			if b.Rate <= b.Baseline {
				t.Fatalf("%+v", b)
			}
		}
	})
}

package alarm

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// History is what was counted by event hour. What came over 48 hours late is kept apart: it is part of
// baselines and of no window. Fill it by Analysed, Found and Received, then hand it to [Evaluate]; it
// keeps sums of its own and must not be used by two at once.
type History struct {
	Start time.Time // of the first hour, UTC
	Hours int

	domains map[[2]string]*domain
	sorted  []*domain
	rules   map[string]map[string]string // rule set → kind → version
}

// domain is what was counted of one domain of a tenant.
type domain struct {
	tenant   string
	name     audit.Domain
	sets     []string   // rule sets, sorted
	n        [][]uint32 // analysed, by set and hour
	late     [][]uint32 // the same of those that came late; nil where there are none
	analysed []uint32   // late ones too: for the coverage
	received []uint32   // with content, late ones too
	kinds    map[string]*kind
	names    []string // of kinds, sorted: any bias first
}

// kind is one kind in a domain, with the sums of each version of its rules that was asked for.
type kind struct {
	k     [][]uint32 // by set and hour; nil where there are none
	late  [][]uint32 // the same of those that came late
	sums  map[string]*sums
	bySet map[string]*sums // the same by rule set
}

// sums are of the hours before an index, of one version of a kind's rules.
type sums struct {
	onTime, late series
}

// series counts analysed interactions and those with the kind; nil is none.
type series struct{ n, k []uint64 }

func (s *series) in(from, to int) (n, k uint64) {
	from, to = max(from, 0), min(to, len(s.n)-1)
	if from >= to {
		return 0, 0
	}
	return s.n[to] - s.n[from], s.k[to] - s.k[from]
}

// in counts what windows are made of: what came in time.
func (s *sums) in(from, to int) (n, k uint64) {
	n, k = s.onTime.in(from, to)
	return n, min(n, k) // an hour that is being recomputed may have more found than analysed
}

// all counts what baselines are made of: what came late too.
func (s *sums) all(from, to int) (n, k uint64) {
	n, k = s.onTime.in(from, to)
	ln, lk := s.late.in(from, to)
	return n + ln, min(n+ln, k+lk)
}

// NewHistory makes one for so many hours from start. rules says which version of each kind's rules a
// rule set holds; a rule set that it does not know is a version of its own.
func NewHistory(start time.Time, hours int, rules map[string]map[string]string) *History {
	return &History{Start: start.UTC().Truncate(time.Hour), Hours: hours, domains: map[[2]string]*domain{}, rules: rules}
}

// hour is the index of a time's hour; it may lie outside.
func (h *History) hour(t time.Time) int {
	d := t.Sub(h.Start)
	i := int(d / time.Hour)
	if d < 0 && d%time.Hour != 0 {
		i--
	}
	return i
}

func (h *History) time(hour int) time.Time { return h.Start.Add(time.Duration(hour) * time.Hour) }

func (h *History) domain(tenant string, name audit.Domain) *domain {
	d := h.domains[[2]string{tenant, string(name)}]
	if d == nil {
		d = &domain{tenant: tenant, name: name, kinds: map[string]*kind{}, analysed: make([]uint32, h.Hours), received: make([]uint32, h.Hours)}
		h.domains[[2]string{tenant, string(name)}] = d
		h.sorted = nil
	}
	return d
}

// set is the index of a rule set, which it takes in.
func (d *domain) set(name string, hours int) int {
	for i, s := range d.sets {
		if s == name {
			return i
		}
	}
	d.sets, d.n, d.late = append(d.sets, name), append(d.n, make([]uint32, hours)), append(d.late, nil)
	return len(d.sets) - 1
}

// Analysed adds analysed interactions of an hour under a rule set, n that came in time and others that
// came late. Hours outside are left alone.
func (h *History) Analysed(tenant string, name audit.Domain, ruleSet string, at time.Time, n, late uint64) {
	i := h.hour(at)
	if i < 0 || i >= h.Hours {
		return
	}
	d := h.domain(tenant, name)
	set := d.set(ruleSet, h.Hours)
	d.n[set][i] += uint32(n)
	h.add(d.late, set, i, late)
}

// add counts into the hour of a set, whose hours are made when there is something to count.
func (h *History) add(into [][]uint32, set, hour int, n uint64) {
	if n == 0 {
		return
	}
	if into[set] == nil {
		into[set] = make([]uint32, h.Hours)
	}
	into[set][hour] += uint32(n)
}

// Received adds to the coverage of an hour: interactions with content, and how many of them were
// analysed.
func (h *History) Received(tenant string, name audit.Domain, at time.Time, received, analysed int64) {
	if i := h.hour(at); i >= 0 && i < h.Hours {
		d := h.domain(tenant, name)
		d.received[i] += uint32(received) // wraps around where the skipped come first, and back
		d.analysed[i] += uint32(analysed)
	}
}

// Found adds interactions of an hour with a kind, "" for any bias: k that came in time and others that
// came late.
func (h *History) Found(c Cell, ruleSet string, at time.Time, k, late uint64) {
	i := h.hour(at)
	if i < 0 || i >= h.Hours {
		return
	}
	d := h.domain(c.Tenant, c.Domain)
	set := d.set(ruleSet, h.Hours)
	x := d.kinds[c.Kind]
	if x == nil {
		x = &kind{sums: map[string]*sums{}, bySet: map[string]*sums{}}
		d.kinds[c.Kind] = x
		d.names = append(d.names, c.Kind)
		slices.Sort(d.names)
	}
	for len(x.k) <= set {
		x.k, x.late = append(x.k, nil), append(x.late, nil)
	}
	h.add(x.k, set, i, k)
	h.add(x.late, set, i, late)
}

// Late counts the analysed interactions of the hours in [from, to) that came too late to alarm.
func (h *History) Late(from, to time.Time) (n uint64) {
	first, end := max(0, h.hour(from)), min(h.Hours, h.hour(to))
	for _, d := range h.domains {
		for _, hours := range d.late {
			for i := first; i < min(end, len(hours)); i++ {
				n += uint64(hours[i])
			}
		}
	}
	return n
}

// all gives the domains in order of tenant and name.
func (h *History) all() []*domain {
	if h.sorted == nil {
		for _, d := range h.domains {
			h.sorted = append(h.sorted, d)
		}
		slices.SortFunc(h.sorted, func(a, b *domain) int {
			return cmp.Or(strings.Compare(a.tenant, b.tenant), strings.Compare(string(a.name), string(b.name)))
		})
	}
	return h.sorted
}

// isBias tells whether a kind counts as bias: its cells lie under the domain's any bias.
func isBias(kind string) bool {
	return kind == "" || strings.HasPrefix(kind, "charter.") || strings.HasPrefix(kind, "terms.")
}

// version is the version of a kind's rules in a rule set. That of any bias changes with that of each
// kind of bias.
func (h *History) version(ruleSet, kind string) string {
	rules, ok := h.rules[ruleSet]
	if !ok {
		return "rule set " + ruleSet
	}
	if kind != "" {
		return rules[kind]
	}
	var b strings.Builder
	for _, k := range sortedKeys(rules) {
		if isBias(k) {
			b.WriteString(k + "=" + rules[k] + "\n")
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// current is the rule set of the newest hour before to that has interactions: of several the one with
// the most, then the first by name. ok is false without any.
func (d *domain) current(to int) (set string, ok bool) {
	for i := to - 1; i >= 0; i-- {
		var most uint32
		for s := range d.sets {
			if n := d.n[s][i]; n > most || n == most && n > 0 && d.sets[s] < set {
				most, set = n, d.sets[s]
			}
		}
		if most > 0 {
			return set, true
		}
	}
	return "", false
}

// sums gives the sums of a kind over the hours whose rules had the version of a rule set.
func (h *History) sums(d *domain, name, current string) *sums {
	x := d.kinds[name]
	if s := x.bySet[current]; s != nil {
		return s
	}
	version := h.version(current, name)
	if s := x.sums[version]; s != nil {
		x.bySet[current] = s
		return s
	}
	s := &sums{}
	for set, ruleSet := range d.sets {
		if h.version(ruleSet, name) != version {
			continue
		}
		s.onTime.add(d.n[set], &s.onTime.n)
		s.late.add(d.late[set], &s.late.n)
		if set < len(x.k) {
			s.onTime.add(x.k[set], &s.onTime.k)
			s.late.add(x.late[set], &s.late.k)
		}
	}
	s.onTime.sum()
	s.late.sum()
	x.sums[version], x.bySet[current] = s, s
	return s
}

// add counts hours into n or k of a series.
func (s *series) add(hours []uint32, into *[]uint64) {
	if hours == nil {
		return
	}
	if s.n == nil {
		s.n, s.k = make([]uint64, len(hours)+1), make([]uint64, len(hours)+1)
	}
	for i, n := range hours {
		(*into)[i+1] += uint64(n)
	}
}

// sum makes of each hour what was before it.
func (s *series) sum() {
	for i := 1; i < len(s.n); i++ {
		s.n[i] += s.n[i-1]
		s.k[i] += s.k[i-1]
	}
}

package alarm

import (
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Policy is what holds for a cell: see policy.yaml for what each value means. Durations are whole hours.
type Policy struct {
	Name                     string
	Tenant, Domain, Kind     string // patterns of the cells it holds for
	Off                      bool
	Cooldown, Reopen, Repeat time.Duration
	Fast                     FastPolicy
	Ticket                   TicketPolicy
	Cusum                    CusumPolicy
	Baseline                 BaselinePolicy
	Resolve                  ResolvePolicy
	Blind                    BlindPolicy
	Critical                 CriticalPolicy
	Mitigation               MitigationPolicy
}

// FastPolicy is of warnings.
type FastPolicy struct {
	Z, Factor float64
	MinK      uint64
}

// TicketPolicy is of rates that open a breach.
type TicketPolicy struct {
	Q, MinRatio        float64
	LongShare          float64
	MinK, MinN         uint64
	InARow             uint64
	Window, LongWindow time.Duration
}

// CusumPolicy is of the cumulative sum; off where H is 0.
type CusumPolicy struct {
	H, Ratio float64
	LookBack time.Duration
}

// BaselinePolicy is of what a rate is compared with.
type BaselinePolicy struct {
	Days          uint64
	Gap, LongGap  time.Duration
	Weight, Floor float64
	MaxWeight     float64
	MinN          uint64
}

// ResolvePolicy is of the end of a breach.
type ResolvePolicy struct {
	Factor float64
	For    time.Duration
}

// BlindPolicy is of coverage.
type BlindPolicy struct {
	Coverage, Resolve float64
	MinN              uint64
}

// CriticalPolicy says which critical findings open a breach at once.
type CriticalPolicy struct{ Confirmed, Unconfirmed bool }

// MitigationPolicy is of bias types that ask for mitigation often.
type MitigationPolicy struct {
	Count  uint64
	Share  float64
	Window time.Duration
}

// anyBias stands in policies for the kind of any bias.
const anyBias = "any"

// defaultName is the name of what holds where no policy matches.
const defaultName = "default"

// Policies are all policies in order; the last is the default, which holds everywhere.
type Policies struct{ list []Policy }

// List gives the policies in order of precedence; the last one matches everything.
func (p *Policies) List() []Policy { return slices.Clone(p.list) }

// For gives the policy of a cell: the first that matches.
func (p *Policies) For(c Cell) *Policy {
	kind := c.Kind
	if kind == "" {
		kind = anyBias
	}
	for i := range p.list {
		q := &p.list[i]
		if matches(q.Tenant, c.Tenant) && matches(q.Domain, string(c.Domain)) && matches(q.Kind, kind) {
			return q
		}
	}
	return &p.list[len(p.list)-1]
}

func matches(pattern, s string) bool {
	if head, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(s, head)
	}
	return pattern == s
}

// reach is how far back the policies look, in hours.
func (p *Policies) reach() int {
	far := 0
	for i := range p.list {
		q := &p.list[i]
		row := int(q.Ticket.InARow) + hours(q.Resolve.For)
		far = max(far, int(q.Baseline.Days)*24+hours(max(q.Baseline.Gap, q.Baseline.LongGap))+row, hours(max(q.Ticket.Window, q.Ticket.LongWindow, q.Cusum.LookBack))+row)
	}
	return far
}

// needs tells whether any policy wants critical findings, confirmed or not.
func (p *Policies) needs() (confirmed, unconfirmed bool) {
	for i := range p.list {
		confirmed = confirmed || p.list[i].Critical.Confirmed && !p.list[i].Off
		unconfirmed = unconfirmed || p.list[i].Critical.Unconfirmed && !p.list[i].Off
	}
	return confirmed, unconfirmed
}

// known are the domains, for faults in policies.
func known(domain string) bool {
	return strings.HasSuffix(domain, "*") || audit.Domain(domain).Known()
}

// mitigationWindows are the windows that policies count mitigations over, each once.
func (p *Policies) mitigationWindows() (list []time.Duration) {
	for i := range p.list {
		if w := p.list[i].Mitigation.Window; !p.list[i].Off && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// Reach is how far before an hour its evaluation looks.
func (p *Policies) Reach() time.Duration { return time.Duration(p.reach()) * time.Hour }

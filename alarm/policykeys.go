package alarm

// key is one value of a policy: where it stands and what it may be.
type key struct {
	name   string
	at     func(*Policy) any // pointer to float64, uint64, bool or time.Duration
	lo, hi float64           // of durations in hours
	more   bool              // above lo, not at it
}

var keys = []key{
	{"off", func(p *Policy) any { return &p.Off }, 0, 0, false},
	{"cooldown", func(p *Policy) any { return &p.Cooldown }, 0, 720, false},
	{"reopen", func(p *Policy) any { return &p.Reopen }, 0, 8760, false},
	{"repeat", func(p *Policy) any { return &p.Repeat }, 1, 8760, false},
	{"fast.z", func(p *Policy) any { return &p.Fast.Z }, 0, 10, true},
	{"fast.factor", func(p *Policy) any { return &p.Fast.Factor }, 1, 1000, false},
	{"fast.min_k", func(p *Policy) any { return &p.Fast.MinK }, 1, 1e9, false},
	{"ticket.q", func(p *Policy) any { return &p.Ticket.Q }, 0, 0.5, true},
	{"ticket.min_k", func(p *Policy) any { return &p.Ticket.MinK }, 1, 1e9, false},
	{"ticket.min_n", func(p *Policy) any { return &p.Ticket.MinN }, 1, 1e9, false},
	{"ticket.min_ratio", func(p *Policy) any { return &p.Ticket.MinRatio }, 1, 1000, false},
	{"ticket.in_a_row", func(p *Policy) any { return &p.Ticket.InARow }, 1, 24, false},
	{"ticket.window", func(p *Policy) any { return &p.Ticket.Window }, 1, 168, false},
	{"ticket.long_window", func(p *Policy) any { return &p.Ticket.LongWindow }, 0, 336, false},
	{"ticket.long_share", func(p *Policy) any { return &p.Ticket.LongShare }, 0, 0.9, true},
	{"cusum.h", func(p *Policy) any { return &p.Cusum.H }, 0, 100, false},
	{"cusum.ratio", func(p *Policy) any { return &p.Cusum.Ratio }, 1, 100, true},
	{"cusum.look_back", func(p *Policy) any { return &p.Cusum.LookBack }, 1, 672, false},
	{"baseline.days", func(p *Policy) any { return &p.Baseline.Days }, 1, 90, false},
	{"baseline.gap", func(p *Policy) any { return &p.Baseline.Gap }, 1, 336, false},
	{"baseline.long_gap", func(p *Policy) any { return &p.Baseline.LongGap }, 0, 672, false},
	{"baseline.weight", func(p *Policy) any { return &p.Baseline.Weight }, 0, 1e6, false},
	{"baseline.max_weight", func(p *Policy) any { return &p.Baseline.MaxWeight }, 0, 1e9, false},
	{"baseline.floor", func(p *Policy) any { return &p.Baseline.Floor }, 0, 0.5, true},
	{"baseline.min_n", func(p *Policy) any { return &p.Baseline.MinN }, 1, 1e9, false},
	{"resolve.factor", func(p *Policy) any { return &p.Resolve.Factor }, 1, 1000, true},
	{"resolve.for", func(p *Policy) any { return &p.Resolve.For }, 1, 336, false},
	{"blind.coverage", func(p *Policy) any { return &p.Blind.Coverage }, 0, 1, false},
	{"blind.resolve", func(p *Policy) any { return &p.Blind.Resolve }, 0, 1, false},
	{"blind.min_n", func(p *Policy) any { return &p.Blind.MinN }, 1, 1e9, false},
	{"critical.confirmed", func(p *Policy) any { return &p.Critical.Confirmed }, 0, 0, false},
	{"critical.unconfirmed", func(p *Policy) any { return &p.Critical.Unconfirmed }, 0, 0, false},
	{"mitigation.count", func(p *Policy) any { return &p.Mitigation.Count }, 1, 1e9, false},
	{"mitigation.share", func(p *Policy) any { return &p.Mitigation.Share }, 0, 1, true},
	{"mitigation.window", func(p *Policy) any { return &p.Mitigation.Window }, 1, 672, false},
}

package alarm

import (
	"context"
	"errors"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/breaches"
)

// Settle is how long after its end an hour is evaluated: its last interactions must have reached the
// rollups. It is also the time in which breaches that belong together come together.
const Settle = 10 * time.Minute

// lookBack is how far back critical findings are asked for.
const lookBack = 8 * 24 * time.Hour

// Runner is the job that evaluates. One runner serves one run at a time.
type Runner struct {
	tables   *Tables
	policies *Policies
	log      breaches.Proposer
	now      func() time.Time
	write    func(context.Context, []audit.Breach) error // replaced by tests

	mitigated   []Mitigated // of the hour
	mitigatedAt time.Time
	mitigatedBy time.Time // the newest decision of the tier then
}

// NewRunner makes one. now is the clock: the newest complete hour is evaluated.
func NewRunner(tables *Tables, policies *Policies, log breaches.Proposer, now func() time.Time) *Runner {
	write := func(ctx context.Context, list []audit.Breach) error {
		return breaches.Write(ctx, tables.conn, tables.db, list...)
	}
	return &Runner{tables: tables, policies: policies, log: log, now: now, write: write}
}

// Outcome is what a run did.
type Outcome struct {
	Figures
	At       time.Time // end of the hour that was evaluated
	Repaired int       // rows of earlier decisions that were missing
	Lost     int       // transitions that another process decided first
	Refused  int       // that do not follow what was decided meanwhile; the next run looks again
	OpenBy   map[audit.BreachTier]int
	Events   []string // ids of breaches that changed
}

// Run evaluates the newest complete hour and has its transitions decided. On an error what was decided
// stays so; the next run goes on.
func (r *Runner) Run(ctx context.Context) (out Outcome, err error) {
	missing, err := r.tables.Unprojected(ctx)
	if err == nil {
		err = r.write(ctx, missing)
	}
	if err != nil {
		return out, err
	}
	out.Repaired = len(missing)
	out.At = r.now().UTC().Add(-Settle).Truncate(time.Hour)
	res, open, err := r.look(ctx, out.At)
	if err != nil {
		return out, err
	}
	out.Figures = res.Figures
	out.OpenBy = open
	var decided []audit.Breach
	for i := range res.Transitions {
		var b audit.Breach
		if b, err = r.decide(ctx, &res.Transitions[i], &out); err != nil {
			break
		}
		if b.Seq > 0 {
			decided = append(decided, b)
		}
	}
	if werr := r.write(context.WithoutCancel(ctx), decided); err == nil {
		err = werr
	}
	if err == nil {
		err = r.tables.WriteWarnings(ctx, out.At, res.Warnings, uint64(r.now().UnixMilli()))
	}
	return out, err
}

// decide proposes one transition and gives what was decided in its place, zero when nothing was.
func (r *Runner) decide(ctx context.Context, b *audit.Breach, out *Outcome) (audit.Breach, error) {
	if err := r.tables.explain(ctx, b); err != nil {
		return audit.Breach{}, err
	}
	d, err := breaches.Propose(ctx, r.log, b)
	var refused *arbiter.Refused
	if errors.As(err, &refused) {
		out.Refused++
		return audit.Breach{}, nil
	}
	if err != nil {
		return audit.Breach{}, err
	}
	if d.State != b.State || d.Reason != b.Reason || !d.To.Equal(b.To) {
		out.Lost++
	} else if len(out.Events) < maxEvents {
		out.Events = append(out.Events, d.ID.String())
	}
	return d, nil
}

// look evaluates an hour without deciding anything. open counts the breaches that are open once the
// transitions are decided.
func (r *Runner) look(ctx context.Context, at time.Time) (res Result, open map[audit.BreachTier]int, err error) {
	in := Input{Policies: r.policies, At: at}
	from := at.Add(-time.Duration(r.policies.reach()) * time.Hour)
	if in.History, err = r.tables.History(ctx, from, at); err != nil {
		return res, nil, err
	}
	if in.Transitions, err = r.tables.Transitions(ctx, from); err != nil {
		return res, nil, err
	}
	confirmed, unconfirmed := r.policies.needs()
	for _, want := range []struct{ any, confirmed bool }{{confirmed, true}, {unconfirmed, false}} {
		if !want.any {
			continue
		}
		list, err := r.tables.Critical(ctx, r.now().Add(-lookBack), want.confirmed)
		if err != nil {
			return res, nil, err
		}
		in.Critical = append(in.Critical, list...)
	}
	if in.Mitigations, err = r.mitigations(ctx, at, decided(in.Transitions, audit.TierMitigation)); err != nil {
		return res, nil, err
	}
	res = Evaluate(in)
	return res, OpenByTier(in.Transitions, res.Transitions), nil
}

// decided gives the time of the newest decision of a tier.
func decided(transitions []audit.Breach, tier audit.BreachTier) (newest time.Time) {
	for i := range transitions {
		if b := &transitions[i]; b.Tier == tier && b.Changed.After(newest) {
			newest = b.Changed
		}
	}
	return newest
}

// mitigations reads once an hour, since the query reads a week of the read model, and once more when somebody decided meanwhile: what they
// had read is newer, and a breach that they opened must not be judged by less.
func (r *Runner) mitigations(ctx context.Context, at, decided time.Time) ([]Mitigated, error) {
	if r.mitigatedAt.Equal(at) && r.mitigatedBy.Equal(decided) {
		return r.mitigated, nil
	}
	list := []Mitigated{}
	for _, w := range r.policies.mitigationWindows() {
		some, err := r.tables.Mitigations(ctx, at, w)
		if err != nil {
			return nil, err
		}
		for _, m := range some {
			if r.policies.For(m.Cell).Mitigation.Window == w {
				list = append(list, m)
			}
		}
	}
	r.mitigated, r.mitigatedAt, r.mitigatedBy = list, at, decided
	return list, nil
}

// OpenByTier counts the breaches that are open after transitions, the later lists over the earlier.
func OpenByTier(lists ...[]audit.Breach) map[audit.BreachTier]int {
	newest := map[audit.ID]*audit.Breach{}
	for _, list := range lists {
		for i := range list {
			if have := newest[list[i].ID]; have == nil || have.Seq <= list[i].Seq {
				newest[list[i].ID] = &list[i]
			}
		}
	}
	open := map[audit.BreachTier]int{audit.TierRate: 0, audit.TierPolicy: 0, audit.TierBlind: 0, audit.TierMitigation: 0}
	for _, b := range newest {
		if b.State == audit.BreachOpen {
			open[b.Tier]++
		}
	}
	return open
}

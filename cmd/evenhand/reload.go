package main

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/sinks/clickhouse"
)

// Outcomes of a reload of the rules.
const (
	reloadSwapped   = "swapped"
	reloadUnchanged = "unchanged" // the files say what is in use already
	reloadRefused   = "refused"   // the packs have faults
	reloadFailed    = "failed"    // the store cannot note the rule set; tried again at the next look
)

// reloader puts a new Analyzer in the place of the current one when the files of rules.dir change. It is
// built, tested and warmed beside the one at work, which goes on when anything is wrong.
type reloader struct {
	rules   rulesSettings
	build   func() (*detectors.Analyzer, error)
	note    func(context.Context, *detectors.Analyzer) error // before any verdict names its rule set
	current *detectors.Current
	count   func(outcome string)
	log     *slog.Logger

	marks  map[string]rules.Mark // of the packs in use
	loaded string                // the files when they were last loaded, whatever came of it
	seen   string                // when they were last looked at
}

// heedHangups lets SIGHUP mean a reload from here on; without rules.dir it ends the process, as usual.
func (st *stack) heedHangups() {
	if st.settings.Rules.Dir == "" {
		return
	}
	st.hup = make(chan os.Signal, 1)
	signal.Notify(st.hup, syscall.SIGHUP)
}

// followRules reloads rules.dir until ctx ends.
func (st *stack) followRules(ctx context.Context) {
	var looks <-chan time.Time
	if every := st.settings.Rules.Poll; every > 0 {
		t := time.NewTicker(every)
		defer t.Stop()
		looks = t.C
	}
	r := &reloader{
		rules: st.settings.Rules, build: func() (*detectors.Analyzer, error) { return newAnalyzer(st.settings) },
		note: st.noteRules, current: st.analyzer, count: st.metrics.RulesReloaded, log: st.log, loaded: st.ruleFiles,
		marks: rules.Marks(os.DirFS(st.settings.Rules.Dir)),
	}
	r.follow(ctx, st.hup, looks)
}

// follow reloads on a signal, and on a look that finds the files changed and, since the look before, at rest.
func (r *reloader) follow(ctx context.Context, hup <-chan os.Signal, looks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			r.reload(ctx)
		case <-looks:
			files := r.rules.files()
			atRest := files == r.seen
			r.seen = files
			if atRest && files != r.loaded {
				r.reload(ctx)
			}
		}
	}
}

func (r *reloader) reload(ctx context.Context) {
	began, files := time.Now(), r.rules.files()
	outcome, err := r.try(ctx)
	defer r.count(outcome) // whoever sees it counted finds it logged
	if outcome != reloadFailed {
		r.loaded = files
	}
	set := r.current.Analyzer().RuleSet()
	var faulty *packFaults
	switch {
	case errors.As(err, &faulty):
		for _, f := range faulty.faults {
			attrs := []any{"where", f.Where, "rule", f.Rule, "field", f.Field}
			if problem := tellable(f.Problem); problem != "" {
				attrs = append(attrs, "problem", problem)
			}
			r.log.Warn("a rule is at fault", attrs...)
		}
		r.log.Warn("the rules stay as they are", "outcome", outcome, "faults", len(faulty.faults), "rule_set", set)
	case err != nil:
		r.log.Warn("the rules stay as they are", "outcome", outcome, "error", err, "rule_set", set)
	default:
		marks := rules.Marks(os.DirFS(r.rules.Dir))
		for _, id := range slices.Sorted(maps.Keys(marks)) {
			if was, there := r.marks[id]; there && was != marks[id] && was.Version == marks[id].Version {
				r.log.Warn("a pack changed and its version did not: its findings before and after cannot be told apart by version", "pack", id, "version", was.Version)
			}
		}
		r.marks = marks
		r.log.Info("rules reloaded", "outcome", outcome, "rule_set", set, "own_packs", len(marks), "took", time.Since(began))
	}
}

func (r *reloader) try(ctx context.Context) (outcome string, err error) {
	defer roomToCompile()()
	a, err := r.build()
	if err != nil {
		return reloadRefused, err
	}
	if a.RuleSet() == r.current.Analyzer().RuleSet() {
		return reloadUnchanged, nil
	}
	if err := r.note(ctx, a); err != nil {
		return reloadFailed, err
	}
	a.Warm()
	r.current.Use(a)
	return reloadSwapped, nil
}

// roomToCompile raises the heap's soft limit while two rule sets are there; the result sets it back.
func roomToCompile() func() {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return func() {}
	}
	debug.SetMemoryLimit(min(2*limit, operatorsLimit))
	return func() { debug.SetMemoryLimit(limit) }
}

// noteRules tells the store the versions of an Analyzer's rules.
func (st *stack) noteRules(ctx context.Context, a *detectors.Analyzer) error {
	if st.conn == nil {
		return nil
	}
	return clickhouse.New(st.conn, st.chconfig.Database, st.settings.sink()).RuleSet(ctx, a.RuleSet(), a.RuleVersions())
}

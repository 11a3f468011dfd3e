package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/gates"
	gatedoor "github.com/evenhand/evenhand/gates/door"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/webhook"
	"github.com/evenhand/evenhand/store"
)

// gatesSettings are what may be set about asking people.
type gatesSettings struct {
	Approvers bool                `koanf:"approvers"` // people with the permission approve look at open gates
	Timeout   time.Duration       `koanf:"timeout"`   // after which a gate is denied whose caller names no time
	Webhook   gateWebhookSettings `koanf:"webhook"`
}

// gateWebhookSettings are of the receiver that is told of gates.
type gateWebhookSettings struct {
	URL     secret.Text   `koanf:"url"` // such addresses often hold a token
	Secret  secret.Text   `koanf:"secret"`
	Timeout time.Duration `koanf:"timeout"`
	Allow   []string      `koanf:"allow"` // networks that are not public
	Texts   bool          `koanf:"texts"` // send matched texts and approvers' words
}

func defaultGates() gatesSettings {
	return gatesSettings{Timeout: gates.DefaultConfig().Timeout, Webhook: gateWebhookSettings{Timeout: webhook.DefaultConfig().Timeout}}
}

func (s gatesSettings) config() gates.Config {
	return gates.Config{Approvers: s.Approvers, Timeout: s.Timeout, AnnounceTexts: s.Webhook.Texts}
}

func (s gatesSettings) webhook() webhook.Config {
	w := s.Webhook
	return webhook.Config{Key: "gates.webhook", URL: w.URL.Reveal(), Secret: w.Secret.Reveal(), Timeout: w.Timeout, Allow: w.Allow}
}

func (s gatesSettings) validate() error {
	errs := []error{s.config().Validate()}
	if s.Webhook.URL != "" {
		errs = append(errs, s.webhook().Validate())
	}
	return errors.Join(errs...)
}

// gateEnd is what serves gates in this process.
type gateEnd struct {
	*gates.Service
	door *gatedoor.Door
	hook *webhook.Client // nil: none is set up
}

// startGates builds what opens and answers gates. It needs the store and the log of decisions.
func (st *stack) startGates() error {
	s, db := st.settings.Gates, st.chconfig.Database
	sink, err := st.sink()
	if err != nil {
		return err
	}
	e := &gateEnd{}
	p := gates.Parts{Store: store.New(st.conn, db), Reader: st.reader, Rows: clickhouse.New(st.conn, db, sink), Log: st.decisions, Observer: st.metrics, Logger: st.log}
	if st.settings.PII.Mask == maskStore {
		m, err := newMasker(st.settings)
		if err != nil {
			return err
		}
		p.Rows = maskedRows{p.Rows, m}
	}
	if s.Webhook.URL != "" {
		if e.hook, err = webhook.NewClient(s.webhook()); err != nil {
			return &settingsError{err}
		}
		p.Announcer = e.hook
	}
	if e.Service, err = gates.New(s.config(), p); err != nil {
		return &settingsError{err}
	}
	e.door = gatedoor.New(e.Service, gatedoor.Options{Metrics: st.metrics, Logger: st.log})
	st.gates = e
	return nil
}

// maskedRows keeps what a gate's rules matched without personal data, as pii.mask before_store has it.
type maskedRows struct {
	gates.Rows
	masker *pii.Masker
}

// Gate implements gates.Rows.
func (r maskedRows) Gate(ctx context.Context, g *audit.HumanGate) error {
	kept := *g
	kept.Matches = slices.Clone(g.Matches)
	texts := make([]string, len(kept.Matches))
	for i := range kept.Matches {
		texts[i] = kept.Matches[i].Text
	}
	masked, err := r.masker.Texts(ctx, texts...)
	for i := range kept.Matches {
		if kept.Matches[i].Text = pii.NotMasked; err == nil {
			kept.Matches[i].Text = masked[i].Text
		}
	}
	return r.Rows.Gate(ctx, &kept)
}

// close ends what Drain has not.
func (e *gateEnd) close() {
	e.door.Drain()
	e.Close()
	if e.hook != nil {
		e.hook.Close()
	}
}

// inlineGates lets the guard and the gateway ask people.
type inlineGates struct{ gates.Gates }

// Open implements guard.Gates.
func (g inlineGates) Open(ctx context.Context, r guard.GateRequest) (audit.ID, error) {
	asked := gates.Request{
		Tenant: r.Tenant, Rule: gates.Rule(r.Rule), MatchedText: r.MatchedText, Provider: r.Provider, Method: r.Method, Timestamp: r.Time, Timeout: r.Timeout,
		ID: r.ID, Interaction: r.Event, TraceID: r.TraceID, Model: r.Model, Application: r.Application, Requester: r.Requester, User: r.User,
	}
	for _, m := range r.Matches {
		asked.Matches = append(asked.Matches, gates.Match{Rule: gates.Rule(m.Rule), Text: m.Text, Side: m.Side, Span: m.Span})
	}
	return g.Gates.Open(ctx, asked)
}

// Wait implements guard.Gates.
func (g inlineGates) Wait(ctx context.Context, id audit.ID) (guard.GateDecision, error) {
	d, err := g.Gates.Wait(ctx, id)
	return guard.GateDecision{Approved: d.Approved, Reason: string(d.Reason), Detail: d.Detail}, err
}

// gatesJob ends gates that nobody waits for.
func gatesJob(p jobParts) (jobs.Job, error) {
	g := p.gates
	if g == nil { // on demand, in a process that serves none
		var err error
		if g, err = gates.New(p.settings.Gates.config(), gates.Parts{
			Store: store.New(p.conn, p.database), Rows: clickhouse.New(p.conn, p.database, p.sink), Log: p.decisions,
		}); err != nil {
			return jobs.Job{}, &settingsError{err}
		}
	}
	return jobs.Job{
		Name: jobGates, Title: "Deny gates that nobody answered in time, and write answers down that a process could not", Schedule: p.settings.Jobs.Gates.Schedule,
		Timeout: 5 * time.Minute, Jitter: 2 * time.Second,
		Run: func(ctx context.Context, _ jobs.Run) (jobs.Result, error) {
			n, err := g.Sweep(ctx)
			return jobs.Result{Figures: map[string]int64{"open": int64(n.Open), "timed_out": int64(n.TimedOut), "mended": int64(n.Mended)}}, err
		},
	}, nil
}

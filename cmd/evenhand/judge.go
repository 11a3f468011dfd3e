package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/judge/lane"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/retention"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/store"
)

// judgeSettings are the judging model's, and what it is asked about.
type judgeSettings struct {
	llm.Config `koanf:",squash"`

	// Enabled false: nobody is asked, whatever else is set.
	Enabled bool `koanf:"enabled"`
	// MaxTokens of an answer, MaxChars of a text in one call, Overlap of two windows of a longer one.
	MaxTokens int `koanf:"max_tokens"`
	MaxChars  int `koanf:"max_chars"`
	Overlap   int `koanf:"overlap"`
	// MaxWindows of a text that are evaluated.
	MaxWindows int `koanf:"max_windows"`
	// US dollars a million tokens; 0 is not known.
	PriceInput  float64 `koanf:"price_input"`
	PriceOutput float64 `koanf:"price_output"`

	Select selectSettings `koanf:"select"`
	Lane   laneSettings   `koanf:"lane"`
}

type selectSettings struct {
	Band          float64  `koanf:"band"`
	Domains       []string `koanf:"domains"`
	RandomPercent float64  `koanf:"random_percent"`
}

type laneSettings struct {
	Votes       int           `koanf:"votes"`
	PerSecond   int           `koanf:"per_second"`
	Concurrency int           `koanf:"concurrency"`
	Timeout     time.Duration `koanf:"timeout"`
	Attempts    int           `koanf:"attempts"`
	Backoff     time.Duration `koanf:"backoff"`
	Days        int           `koanf:"days"`
}

func defaultJudge() judgeSettings {
	c, s := compliance.DefaultConfig(), judge.DefaultConfig()
	out := judgeSettings{
		Config: llm.DefaultConfig(), Enabled: true, MaxTokens: c.MaxTokens, MaxChars: c.MaxChars, Overlap: c.Overlap, MaxWindows: c.MaxWindows,
		Select: selectSettings{Band: s.Band, RandomPercent: s.RandomPercent}, Lane: laneSettings(lane.DefaultConfig()),
	}
	for _, d := range s.Domains {
		out.Select.Domains = append(out.Select.Domains, string(d))
	}
	return out
}

// on tells whether interactions are judged. A key that only the environment's OPENAI_API_KEY gives was not meant for that: it
// serves what a person asks for.
func (s judgeSettings) on() bool { return s.Enabled && (s.BaseURL != "" || s.APIKey != "") }

func (s judgeSettings) selection() judge.Config {
	c := judge.Config{Band: s.Select.Band, RandomPercent: s.Select.RandomPercent}
	for _, d := range s.Select.Domains {
		c.Domains = append(c.Domains, audit.Domain(d))
	}
	return c
}

func (s judgeSettings) evaluation() compliance.Config {
	c := compliance.DefaultConfig()
	c.MaxTokens, c.MaxChars, c.Overlap, c.MaxWindows = s.MaxTokens, s.MaxChars, s.Overlap, s.MaxWindows
	return c
}

func (s judgeSettings) validate() error {
	errs := []error{s.Config.Validate(), s.selection().Validate(), lane.Config(s.Lane).Validate(), s.evaluation().Validate()}
	if s.PriceInput < 0 || s.PriceOutput < 0 {
		errs = append(errs, errors.New("judge.price_input, judge.price_output: are US dollars a million tokens, 0 for not known"))
	}
	return errors.Join(errs...)
}

// version names model and prompt, as verdicts of the judge have it.
func (s judgeSettings) version() string { return compliance.PromptVersion + "/" + s.Model }

// price is what a call costs.
func (s judgeSettings) price(_ string, u llm.Usage) (usd float64, ok bool) {
	return (float64(u.Input)*s.PriceInput + float64(u.Output)*s.PriceOutput) / 1e6, s.PriceInput > 0 || s.PriceOutput > 0
}

// newModel makes the client of the judging model; llm.ErrOff when there is none. The caller closes.
func (s judgeSettings) newModel(o llm.Observer) (*llm.Client, error) {
	m, err := llm.New(s.Config, llm.Options{Price: s.price, Observer: o})
	if err != nil {
		return nil, &settingsError{err}
	}
	return m, nil
}

// newEvaluator makes the Compliance Evaluator on a model.
func (s settings) newEvaluator(m llm.Model) (*compliance.Evaluator, error) {
	c := s.Judge.evaluation()
	var err error
	if c.Mask, err = s.judgeMask(); err != nil {
		return nil, err
	}
	e, err := compliance.New(m, c)
	if err != nil {
		return nil, &settingsError{err}
	}
	return e, nil
}

// judgeMask gives what hides personal data from a model, nil where nothing is to.
func (s settings) judgeMask() (func(context.Context, string) (pii.Masked, error), error) {
	m, err := newMasker(s)
	if m == nil || err != nil {
		return nil, err
	}
	return compliance.MaskPersonal(m), nil
}

// judgeEnd is what a process has to ask the judge with and, with the role, to answer.
type judgeEnd struct {
	publisher *bus.Publisher
	asker     *lane.Asker
	lane      *lane.Lane // nil without the role
	trouble   atomic.Pointer[error]
	requests  atomic.Pointer[bus.Subscriber] // those that are answered now
}

// judges tells whether this process answers requests to the judge.
func (st *stack) judges() bool { return st.has(roleJudge) && st.settings.Judge.on() }

// newAsker makes the part that asks. The caller closes.
func newAsker(s settings, conn driver.Conn, db string, kafka kafkaconn.Config, m *obs.Metrics, log *slog.Logger) (*judgeEnd, error) {
	sel, err := judge.NewSelector(s.Judge.selection())
	if err != nil {
		return nil, &settingsError{err}
	}
	pub, err := bus.NewPublisher(kafka, bus.DefaultPublisherOptions())
	if err != nil {
		return nil, err
	}
	if m == nil {
		m = obs.NewMetrics(nil)
	}
	starting := errors.New("it is starting")
	e := &judgeEnd{publisher: pub, asker: &lane.Asker{
		Selector: sel, Publisher: pub, Logger: log, Lost: m.JudgeLost,
		Asked: func(why judge.Reason, n int) { m.JudgeAsked(string(why), n) }, TextsGo: textsGo(s, conn, db),
	}}
	e.trouble.Store(&starting)
	return e, nil
}

// textsGo tells when the texts of a tenant's events of a day reach their limit.
func textsGo(s settings, conn driver.Conn, db string) func(context.Context, string, time.Time) (time.Time, error) {
	keep, classes := s.Retention.config(), retention.NewClasses(conn, db)
	return func(ctx context.Context, tenant string, day time.Time) (time.Time, error) {
		return classes.TextsGo(ctx, keep, tenant, day)
	}
}

// newJudge makes the part that asks, and with the role the one that answers.
func (st *stack) newJudge() (e *judgeEnd, err error) {
	s := st.settings
	if e, err = newAsker(s, st.conn, st.chconfig.Database, st.kafka, st.metrics, st.log); err != nil || !st.judges() {
		return e, err
	}
	ev, err := st.asking.evaluator() // one client, so that a tenant has one budget
	if err == nil {
		var sink clickhouse.Options
		if sink, err = st.sink(); err != nil {
			return nil, errors.Join(err, e.close())
		}
		err = e.answers(s, st.conn, st.chconfig.Database, sink, st.publisher, lane.Parts{Evaluator: ev, Told: st.tellVerdict(), Observer: st.metrics, Logger: st.log})
	}
	if err != nil {
		return nil, errors.Join(err, e.close())
	}
	st.metrics.FollowJudge(e.oldest)
	return e, nil
}

// answers adds what answers requests; p has the parts that differ from caller to caller.
func (e *judgeEnd) answers(s settings, conn driver.Conn, db string, sink clickhouse.Options, publisher *stream.Publisher, p lane.Parts) (err error) {
	rows := clickhouse.New(conn, db, sink)
	p.Store, p.Version, p.Selector, p.Rows, p.Current, p.Stream, p.Bury = store.New(conn, db), s.Judge.version(), e.asker.Selector, rows, repair.New(conn, db), publisher, burying(rows, publisher)
	p.TextsGo = e.asker.TextsGo
	e.lane, err = lane.New(lane.Config(s.Judge.Lane), p)
	return err
}

// ask is what the pipeline calls; nil where nobody is asked.
func (e *judgeEnd) ask() func(context.Context, []audit.Record) {
	if e == nil {
		return nil
	}
	return e.asker.Ask
}

func (e *judgeEnd) state() error {
	if p := e.trouble.Load(); p != nil {
		return *p
	}
	return nil
}

// oldest is when the oldest request came that waits for its answer; zero when none does.
func (e *judgeEnd) oldest() (came time.Time) {
	if requests := e.requests.Load(); requests != nil {
		came = requests.Oldest()
	}
	return came
}

func (e *judgeEnd) close() error {
	return e.publisher.Close()
}

// answerJudge answers requests until ctx ends. It fails alone: the pipeline needs no judge.
func (st *stack) answerJudge(ctx context.Context) {
	st.log.Info("the judge is at work", "model", st.settings.Judge.Model, "version", st.settings.Judge.version())
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		began := time.Now()
		if err := st.answerJudgeOnce(ctx); err != nil && ctx.Err() == nil {
			st.judge.trouble.Store(&err)
			st.log.Error("requests to the judge are not answered", "error", err.Error())
		}
		if time.Since(began) > time.Minute {
			pause = time.Second
		}
		wait.For(ctx, pause)
	}
}

func (st *stack) answerJudgeOnce(ctx context.Context) error {
	opt := bus.DefaultSubscriberOptions()
	opt.Logger, opt.OnError, opt.Ahead = st.log, func(op string, _ error) { st.metrics.BrokerError("judge_" + op) }, lane.Ahead
	requests, err := bus.NewSubscriber(st.kafka, opt)
	if err != nil {
		return err
	}
	st.judge.trouble.Store(nil)
	st.judge.requests.Store(requests)
	return st.judge.lane.Run(ctx, requests)
}

// judgeJob asks again for what was lost or failed.
func judgeJob(s settings, st *store.Store, e *judgeEnd) jobs.Job {
	j := jobs.Job{
		Name: jobJudge, Title: "Ask the judge for what was chosen and never asked for, and again for what failed", Schedule: s.Jobs.JudgeSweep.Schedule,
		Timeout: 10 * time.Minute, Jitter: 5 * time.Second,
		Run: func(ctx context.Context, run jobs.Run) (jobs.Result, error) {
			o, err := (&lane.Sweeper{Config: lane.Config(s.Judge.Lane), Store: st, Asker: e.asker}).Sweep(ctx, run.Watermark)
			return jobs.Result{Watermark: o.Through, Figures: map[string]int64{"lost": int64(o.Lost), "again": int64(o.Again)}}, err
		},
	}
	if !s.Judge.on() {
		j.Elsewhere = "no judging model is set up: set judge.api_key, or judge.base_url for a server of your own"
	}
	return j
}

// diagnose tells the doctor about the judge's settings; mask is pii.mask.
func (s judgeSettings) diagnose(mask string) diagnosis {
	const what = "judge"
	m, err := s.newModel(nil)
	switch {
	case !s.Enabled:
		return diagnosis{"ok", what, "off: judge.enabled is false"}
	case err != nil && !errors.Is(err, llm.ErrOff):
		return diagnosis{"bad", what, err.Error()}
	case err != nil:
		return diagnosis{"ok", what, "no judging model is set up: nothing is sent to one and rules decide alone; set judge.api_key, or judge.base_url for a server of your own"}
	}
	m.Close()
	if !s.on() {
		return diagnosis{"ok", what, "OPENAI_API_KEY serves what a person asks for; no interaction is sent to a model until judge.api_key or judge.base_url is set"}
	}
	says := fmt.Sprintf("%s is asked about doubt (band %v), about %s and %v %% at random", s.Model, s.Select.Band, audit.List(s.Select.Domains), s.Select.RandomPercent)
	if mask == maskOff {
		return diagnosis{"warn", what, says + "; personal data are not masked before: pii.mask is off"}
	}
	return diagnosis{"ok", what, says}
}

// asked adds to what the doctor says of the judge what its server says to the key, and whether it has the model.
func (s judgeSettings) asked(ctx context.Context, d diagnosis) diagnosis {
	m, err := s.newModel(nil)
	if err != nil || !s.on() {
		return d
	}
	defer m.Close()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	models, err := m.Check(ctx)
	switch advice := llm.Advice(err); {
	case advice != "":
		return diagnosis{"bad", d.What, fmt.Sprintf("%v: %s", err, advice)}
	case err != nil:
		return diagnosis{"warn", d.What, fmt.Sprintf("%s; its server does not answer now: %v", d.Says, err)}
	case len(models) > 0 && !slices.Contains(models, s.Model):
		return diagnosis{"warn", d.What, d.Says + "; its server lists no such model: judge.model"}
	}
	return d
}

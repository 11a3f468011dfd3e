package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/bus"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/remediation"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/linear"
	"github.com/evenhand/evenhand/sinks/webhook"
)

// linearDoor is where Linear delivers.
const linearDoor = "/v1/linear/webhook"

// linearSettings also hold what is said to trackers of any kind: labels, due days and links.
type linearSettings struct {
	APIKey   secret.Text     `koanf:"api_key"` // none: Linear is told nothing
	Team     string          `koanf:"team"`    // key of the team that gets the issues
	Endpoint string          `koanf:"endpoint"`
	Timeout  time.Duration   `koanf:"timeout"`
	Labels   []string        `koanf:"labels"`
	DueDays  dueDaysSettings `koanf:"due_days"`
	Links    linkSettings    `koanf:"links"`
	// CommentResolved tells the issue when the rate is back near its baseline.
	CommentResolved bool `koanf:"comment_resolved"`
	// Poll is how often Linear is asked how issues stand; 0: never.
	Poll time.Duration `koanf:"poll"`
	// WebhookSecret checks what Linear delivers to /v1/linear/webhook; none: the door is shut.
	WebhookSecret secret.Text `koanf:"webhook_secret"`
}

// dueDaysSettings are days until an issue is due, by severity; 0 sets no day.
type dueDaysSettings struct {
	Critical int `koanf:"critical"`
	High     int `koanf:"high"`
	Medium   int `koanf:"medium"`
	Low      int `koanf:"low"`
}

// linkSettings are URL templates.
type linkSettings struct {
	Review  string `koanf:"review"`
	Grafana string `koanf:"grafana"`
}

// webhookSettings are of the generic tracker.
type webhookSettings struct {
	URL     secret.Text   `koanf:"url"` // such addresses often hold a token
	Secret  secret.Text   `koanf:"secret"`
	Timeout time.Duration `koanf:"timeout"`
	Allow   []string      `koanf:"allow"` // networks that are not public
}

func defaultLinear() linearSettings {
	c, p := linear.DefaultConfig(), remediation.DefaultPolicy()
	return linearSettings{
		Endpoint: c.Endpoint, Timeout: c.Timeout, Labels: p.Labels, CommentResolved: p.CommentResolved, Poll: remediation.DefaultPoll,
		DueDays: dueDaysSettings{p.DueDays[audit.Critical], p.DueDays[audit.High], p.DueDays[audit.Medium], p.DueDays[audit.Low]},
	}
}

func (s settings) linearConfig() linear.Config {
	l := s.Linear
	return linear.Config{APIKey: l.APIKey.Reveal(), Team: l.Team, Endpoint: l.Endpoint, Labels: l.Labels, Timeout: l.Timeout}
}

func (s settings) webhookConfig() webhook.Config {
	w := s.Webhook
	return webhook.Config{URL: w.URL.Reveal(), Secret: w.Secret.Reveal(), Timeout: w.Timeout, Allow: w.Allow}
}

func (s settings) ticketPolicy() remediation.Policy {
	l := s.Linear
	return remediation.Policy{
		Labels: l.Labels, Review: l.Links.Review, Grafana: l.Links.Grafana, CommentResolved: l.CommentResolved,
		DueDays: map[audit.Severity]int{audit.Critical: l.DueDays.Critical, audit.High: l.DueDays.High, audit.Medium: l.DueDays.Medium, audit.Low: l.DueDays.Low},
	}
}

// tracks tells whether a tracker is set up.
func (s settings) tracks() bool { return s.Linear.APIKey != "" || s.Webhook.URL != "" }

// teamAlone is what is said of settings that mean Linear and lack its key: a variable that did not arrive, an empty file. It is
// no fault, for commands and installations that send nothing may share the file.
const teamAlone = "linear.team is set and linear.api_key is not, or is empty: give EVENHAND_LINEAR_API_KEY_FILE to the process that sends"

func (s settings) validateTrackers() error {
	errs := []error{s.ticketPolicy().Validate()}
	if s.Linear.APIKey != "" {
		errs = append(errs, s.linearConfig().Validate())
		if p := s.Linear.Poll; p != 0 && p < time.Minute {
			errs = append(errs, fmt.Errorf("linear.poll: %v is neither 0, which is never, nor at least 1m", p))
		}
	}
	if s.Webhook.URL != "" {
		errs = append(errs, s.webhookConfig().Validate())
	}
	return errors.Join(errs...)
}

// validateSending holds what only a process that speaks with trackers has: commands that read the same file have no secrets.
func (s settings) validateSending() error {
	if s.Linear.APIKey == "" && s.Linear.WebhookSecret != "" {
		return errors.New("linear.webhook_secret: is of no use without linear.api_key")
	}
	return nil
}

// closer lets go of connections.
type closer interface{ Close() }

// trackers lists the trackers that are set up: this is the one place that knows them all.
func (s settings) trackers() (list []sinks.Tracker, err error) {
	if s.Linear.APIKey != "" {
		t, err := linear.New(s.linearConfig())
		if err != nil {
			return nil, &settingsError{err}
		}
		list = append(list, t)
	}
	if s.Webhook.URL != "" {
		t, err := webhook.New(s.webhookConfig())
		if err != nil {
			return nil, &settingsError{err}
		}
		list = append(list, t)
	}
	return list, nil
}

// remedy is what a process has to remediate with.
type remedy struct {
	outbox    *remediation.Outbox
	publisher *bus.Publisher
	service   *remediation.Service
	trackers  []sinks.Tracker
	trouble   atomic.Pointer[error] // why the router does not run, nil while it does
}

// newRemedy gives nil when no tracker is set up: breaches are recorded all the same. The caller closes.
func newRemedy(s settings, conn driver.Conn, database string, kafka kafkaconn.Config, o remediation.Observer, log *slog.Logger) (*remedy, error) {
	if !s.tracks() {
		if s.Linear.Team != "" {
			log.Warn("breaches are recorded, and nobody gets an issue", "detail", teamAlone)
		}
		return nil, nil
	}
	list, err := s.trackers()
	if err != nil {
		return nil, err
	}
	targets := make([]remediation.Target, len(list))
	for i, t := range list {
		targets[i] = remediation.Target{Tracker: t, Policy: s.ticketPolicy()}
	}
	pub, err := bus.NewPublisher(kafka, bus.DefaultPublisherOptions())
	if err != nil {
		return nil, err
	}
	opt := remediation.DefaultOptions()
	opt.Observer, opt.Logger, opt.Poll = o, log, s.Linear.Poll
	r := &remedy{outbox: remediation.NewOutbox(conn, database), publisher: pub, trackers: list}
	starting := errors.New("it is starting")
	r.trouble.Store(&starting)
	if r.service, err = remediation.New(r.outbox, pub, opt, targets...); err != nil {
		return nil, errors.Join(&settingsError{err}, pub.Close())
	}
	return r, nil
}

func (r *remedy) state() error {
	if p := r.trouble.Load(); p != nil {
		return *p
	}
	return nil
}

func (r *remedy) close() error {
	err := r.publisher.Close()
	for _, t := range r.trackers {
		if c, ok := t.(closer); ok {
			c.Close()
		}
	}
	return err
}

// remediates tells whether this process sends tickets.
func (st *stack) remediates() bool { return st.has(roleRemediation) && st.settings.tracks() }

// linearInbox is the door for Linear's webhooks; their signature stands for a key.
func (st *stack) linearInbox() http.Handler {
	return &remediation.Inbox{Outbox: st.remedy.outbox, Publisher: st.remedy.publisher, Target: linear.Name, Secret: st.settings.Linear.WebhookSecret.Reveal(), Logger: st.log}
}

// remediate sends tickets until ctx ends. It fails alone: the pipeline needs no tracker.
func (st *stack) remediate(ctx context.Context) {
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, time.Minute) {
		began := time.Now()
		if err := st.remediateOnce(ctx); err != nil && ctx.Err() == nil {
			st.remedy.trouble.Store(&err)
			st.log.Error("tickets are not sent", "error", err.Error())
		}
		if time.Since(began) > time.Minute {
			pause = time.Second
		}
		wait.For(ctx, pause)
	}
}

func (st *stack) remediateOnce(ctx context.Context) error {
	opt := bus.DefaultSubscriberOptions()
	opt.Logger, opt.OnError = st.log, func(op string, _ error) { st.metrics.BrokerError("remediation_" + op) }
	tickets, err := bus.NewSubscriber(st.kafka, opt)
	if err != nil {
		return err
	}
	opt.Group = remediation.IssuesGroup
	issues, err := bus.NewSubscriber(st.kafka, opt)
	if err != nil {
		return err
	}
	st.remedy.trouble.Store(nil)
	return st.remedy.service.Run(ctx, tickets, issues, st.decisions)
}

// remediationJob writes and publishes what is to be said to trackers.
func remediationJob(s settings, r *remedy) jobs.Job {
	j := jobs.Job{
		Name: jobRemediation, Title: "Write tickets for new transitions of breaches, and send again what waits", Schedule: s.Jobs.Remediation.Schedule,
		Timeout: 5 * time.Minute, Jitter: 2 * time.Second,
		Run: func(ctx context.Context, run jobs.Run) (jobs.Result, error) {
			o, err := r.service.Sweep(ctx, run.Watermark)
			oldest := int64(0)
			if !o.Figures.Oldest.IsZero() {
				oldest = int64(time.Since(o.Figures.Oldest).Seconds())
			}
			return jobs.Result{Watermark: o.Through, Figures: map[string]int64{
				"written": int64(o.Derived), "published": int64(o.Published), "pending": int64(o.Figures.Pending), "sent": int64(o.Figures.Sent),
				"dead": int64(o.Figures.Dead), "oldest_pending_seconds": oldest, "moved": int64(o.Moved),
			}}, err
		},
	}
	if !s.tracks() {
		j.Elsewhere = "no tracker is set up: set linear.api_key and linear.team, or webhook.url"
	}
	return j
}

// tracker tells the doctor about the trackers that are set up.
func tracker(ctx context.Context, s settings) diagnosis {
	const what = "tracker"
	if !s.tracks() && s.Linear.Team != "" {
		return diagnosis{"warn", what, teamAlone + "; with these settings breaches are recorded and nobody gets an issue"}
	}
	if !s.tracks() {
		return diagnosis{"ok", what, "these settings name none: a process that runs with them records breaches, and nobody gets an issue; see docs/linear.md"}
	}
	says := ""
	if s.Linear.APIKey != "" {
		t, err := linear.New(s.linearConfig())
		if err == nil {
			defer t.Close()
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			err = t.Check(ctx)
		}
		if err != nil {
			return diagnosis{"bad", what, err.Error()}
		}
		says = "Linear's team " + s.Linear.Team + " answers"
		switch {
		case s.Linear.WebhookSecret != "":
		case s.Linear.Poll == 0:
			return diagnosis{"warn", what, says + "; closed issues mitigate nothing until linear.webhook_secret or linear.poll is set"}
		default:
			says += fmt.Sprintf(", and is asked every %s for issues that people closed", s.Linear.Poll)
		}
	}
	if s.Webhook.URL != "" {
		if says != "" {
			says += "; "
		}
		says += fmt.Sprintf("a webhook is set up, signed, within %s", s.Webhook.Timeout)
	}
	return diagnosis{"ok", what, says}
}

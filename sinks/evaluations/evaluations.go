// Package evaluations tells an OpenTelemetry backend what was found: one event gen_ai.evaluation.result for
// each evaluation of a verdict, parented to the call's span by trace and span id.
//
// An event is a log record, sent by OTLP over HTTP. It holds ids, codes, scores and the names of rules, no text
// of people. Evaluations are evenhand.bias, evenhand.safety and evenhand.gate, and of the judge's verdict
// evenhand.judge.bias, .dei and .offensive; their labels stand at the constants. A verdict without a trace id, or on nothing (skipped), gives none.
//
// A caller never waits: events go to a bounded queue, and what has no room is dropped and counted. Delivery is
// at most once: what the backend does not take within about a minute is counted as lost. An event costs some
// microseconds; without an endpoint there is no Sender and no cost.
//
// https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-events.md
package evaluations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/evenhand/evenhand/audit"
)

// What is sent.
const (
	Flagged = "flagged" // evaluations whose label is flagged
	All     = "all"     // those that found nothing, and analyses that failed, too
)

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Endpoint is the base address of an OTLP/HTTP collector, "http://127.0.0.1:4318"; /v1/logs is added where
	// it is missing. Empty: nothing is sent.
	Endpoint string
	// Headers go with each request, as OTEL_EXPORTER_OTLP_HEADERS has them: "Authorization=Bearer%20…,x=y".
	Headers string
	// Only is Flagged or All. Default Flagged.
	Only string
	// Queue is how many events wait for the backend at most. Default 10,000; 1..1000000.
	Queue int
}

// DefaultConfig sends nothing: it has no endpoint.
func DefaultConfig() Config { return Config{Only: Flagged, Queue: 10_000} }

// Validate reports every fault at once; values of headers are not quoted.
func (c Config) Validate() error {
	var errs []error
	if _, err := c.address(); c.Endpoint != "" && err != nil {
		errs = append(errs, err)
	}
	if _, err := c.headers(); err != nil {
		errs = append(errs, err)
	}
	if c.Only != Flagged && c.Only != All {
		errs = append(errs, fmt.Errorf("evaluations.only: %q is not one of %s, %s", c.Only, Flagged, All))
	}
	if c.Queue < 1 || c.Queue > 1_000_000 {
		errs = append(errs, fmt.Errorf("evaluations.queue: %d is not in 1..1000000", c.Queue))
	}
	return errors.Join(errs...)
}

// address is where records are posted.
func (c Config) address() (string, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", errors.New("evaluations.endpoint: is not an http address such as http://127.0.0.1:4318")
	}
	if !strings.HasSuffix(u.Path, "/v1/logs") {
		u = u.JoinPath("v1", "logs")
	}
	return u.String(), nil
}

func (c Config) headers() (map[string]string, error) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(c.Headers, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		name, raw, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(raw))
		if !ok || err != nil || strings.TrimSpace(name) == "" || strings.ContainsAny(name+value, "\r\n") {
			return nil, errors.New("evaluations.headers: is not NAME=VALUE,…, with values encoded as in a URL")
		}
		out[strings.TrimSpace(name)] = value
	}
	return out, nil
}

// Options is what the program sets.
type Options struct {
	Version string // of the program
	// Count is told what became of events: sent, dropped (the queue was full) or lost. It must not block.
	Count  func(outcome string, n int)
	Logger *slog.Logger
}

// Sender sends events. It is safe for concurrent use; a nil one does nothing.
type Sender struct {
	queue    *queue
	provider *sdklog.LoggerProvider
	logger   log.Logger
	all      bool
}

// New makes a sender, nil when no endpoint is set. It connects with the first event.
func New(ctx context.Context, c Config, o Options) (*Sender, error) {
	const op = "sinks/evaluations: new"
	if c.Endpoint == "" {
		return nil, nil
	}
	if err := c.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	address, _ := c.address() // validated
	headers, _ := c.headers()
	opts := []otlploghttp.Option{otlploghttp.WithEndpointURL(address), otlploghttp.WithCompression(otlploghttp.GzipCompression)}
	if len(headers) > 0 {
		opts = append(opts, otlploghttp.WithHeaders(headers))
	}
	exporter, err := otlploghttp.New(ctx, opts...)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("evaluations.endpoint: %w", err))
	}
	return newSender(exporter, c, o), nil
}

func newSender(e sdklog.Exporter, c Config, o Options) *Sender {
	if o.Count == nil {
		o.Count = func(string, int) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	q := newQueue(e, c.Queue, o)
	p := sdklog.NewLoggerProvider(sdklog.WithProcessor(q),
		sdklog.WithResource(resource.NewSchemaless(attribute.String("service.name", "evenhand"), attribute.String("service.version", o.Version))))
	return &Sender{queue: q, provider: p, logger: p.Logger("github.com/evenhand/evenhand"), all: c.Only == All}
}

// Close sends what waits, at most until ctx ends; the rest is counted as lost.
func (s *Sender) Close(ctx context.Context) error {
	if s == nil {
		return nil
	}
	err := s.provider.Shutdown(context.WithoutCancel(ctx)) // waits only for callers, who do not wait
	if err = errors.Join(err, s.queue.drain(ctx)); err != nil {
		return audit.E("sinks/evaluations: close", audit.KindUnavailable, err)
	}
	return nil
}

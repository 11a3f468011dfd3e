package obs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// TraceConfig is what an operator may set about spans.
type TraceConfig struct {
	// Endpoint is the OTLP/HTTP collector, "http://127.0.0.1:4318". Empty: no spans, no cost.
	Endpoint string `koanf:"endpoint"`
	// Ratio of traces that get a span, 0..1. Default 1.
	Ratio float64 `koanf:"ratio"`
}

// Tracer sends one span an interaction, in the interaction's own trace.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// Validate reports every fault with its key.
func (c TraceConfig) Validate() error {
	var errs []error
	if c.Ratio < 0 || c.Ratio > 1 {
		errs = append(errs, fmt.Errorf("trace.ratio: %v is not in 0..1", c.Ratio))
	}
	if u, err := url.Parse(c.Endpoint); err == nil && u.User != nil {
		errs = append(errs, errors.New("trace.endpoint: holds a name or a password, which would not be sent; name the address alone"))
	} else if c.Endpoint != "" && (err != nil || u.Host == "") {
		errs = append(errs, errors.New("trace.endpoint: is not an address such as http://127.0.0.1:4318"))
	}
	return errors.Join(errs...)
}

// NewTracer starts the exporter; it gives nil when no endpoint is set.
func NewTracer(ctx context.Context, c TraceConfig, version string) (*Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	u, _ := url.Parse(c.Endpoint)                 // validated
	if !strings.HasSuffix(u.Path, "/v1/traces") { // the exporter takes the path as it is
		u = u.JoinPath("v1", "traces")
	}
	exp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
	if err != nil {
		return nil, fmt.Errorf("trace.endpoint: %w", err)
	}
	return newTracer(sdktrace.WithBatcher(exp), c.Ratio, version), nil
}

func newTracer(export sdktrace.TracerProviderOption, ratio float64, version string) *Tracer {
	p := sdktrace.NewTracerProvider(export,
		sdktrace.WithSampler(sdktrace.TraceIDRatioBased(ratio)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "evenhand"), attribute.String("service.version", version))))
	return &Tracer{provider: p, tracer: p.Tracer("github.com/evenhand/evenhand")}
}

// Batch makes a span from broker time to commit for each interaction. It carries ids, codes and
// scores, no text.
func (t *Tracer) Batch(b *sinks.Batch, committed time.Time) {
	for i := range b.Records {
		r := &b.Records[i]
		in, v := r.Interaction, r.Verdict
		ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent(in))
		_, span := t.tracer.Start(ctx, "evenhand.audit", trace.WithTimestamp(r.Origin.BrokerTime), trace.WithSpanKind(trace.SpanKindConsumer),
			trace.WithAttributes(
				attribute.String("evenhand.audit_id", in.ID.String()),
				attribute.String("evenhand.tenant", in.Tenant),
				attribute.String("evenhand.domain", string(in.Domain)),
				attribute.String("gen_ai.request.model", in.Model),
				attribute.String("evenhand.status", string(v.Status)),
				attribute.Bool("evenhand.bias_detected", v.Detected),
				attribute.StringSlice("evenhand.bias_type", v.BiasTypes),
				attribute.String("evenhand.action", string(v.Action)),
				attribute.Float64("evenhand.bias_score", v.BiasSum.Float()),
				attribute.Int64("messaging.kafka.message.offset", r.Origin.Offset),
				attribute.String("messaging.destination.name", r.Origin.Topic),
			))
		span.End(trace.WithTimestamp(committed))
	}
}

// parent is the caller's span; a producer that sent only a trace id gets a made span id, because a
// span context without one is not valid.
func parent(in *audit.Interaction) trace.SpanContext {
	tid, err := trace.TraceIDFromHex(in.TraceID)
	if err != nil {
		return trace.SpanContext{}
	}
	sid, err := trace.SpanIDFromHex(in.SpanID)
	if err != nil {
		copy(sid[:], in.ID[8:])
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid, TraceFlags: trace.FlagsSampled, Remote: true})
}

// Close sends what is left.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

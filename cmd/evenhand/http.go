package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/door"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
)

// handler is all that this process serves.
func (st *stack) handler() http.Handler {
	deps := door.Deps{
		Decoder: ingest.NewDecoder(st.settings.decoder()), APIKey: st.settings.HTTP.APIKey.Reveal(),
		Limits:  door.Limits{Message: kafkaconn.MaxMessage},
		Metrics: st.metrics, Logger: st.log,
	}
	if st.producer != nil {
		deps.Producer = &frontDoor{st}
	}
	if st.has(roleAnalyzer) {
		deps.Analyze, deps.Evaluate = st.analyzer.Analyze, evaluateText
	}
	mux := http.NewServeMux()
	mux.Handle("/", door.Handler(deps))
	mux.Handle("GET /metrics", st.metrics.Handler())
	mux.Handle("GET /healthz", obs.Healthz())
	mux.Handle("GET /readyz", obs.Readyz(st.checks()))
	if st.settings.HTTP.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	return mux
}

// checks are what must work for this process's roles: a real query and a real fetch.
func (st *stack) checks() (cs []obs.Check) {
	if st.conn != nil {
		cs = append(cs, obs.Check{Name: "store", Run: func(ctx context.Context) error {
			var n uint64
			err := st.conn.QueryRow(ctx, "SELECT count() FROM "+st.chconfig.Database+".ingest_batches").Scan(&n)
			return chconn.Wrap("query", err)
		}})
	}
	if st.producer != nil || st.pipeline != nil {
		cs = append(cs, obs.Check{Name: "broker", Run: st.fetchOnce})
	}
	return cs
}

// fetchOnce reads from the first offset of one partition, as a consumer would.
func (st *stack) fetchOnce(ctx context.Context) error {
	if st.broker != nil && st.broker.Full() {
		return errors.New("llm.interactions is at its cap: producers are refused until the pipeline has caught up")
	}
	cl, release, err := st.kafka.Client()
	if err != nil {
		return err
	}
	defer release()
	offsets, err := cl.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{kafkaconn.Interactions: {kafka.LastOffsetOf(0)}}})
	if err != nil {
		return kafkaconn.E("fetch", err)
	}
	for _, p := range offsets.Topics[kafkaconn.Interactions] {
		if p.Error != nil {
			return kafkaconn.E("fetch", p.Error)
		}
		res, err := cl.Fetch(ctx, &kafka.FetchRequest{Topic: kafkaconn.Interactions, Partition: 0, Offset: p.LastOffset, MinBytes: 1, MaxBytes: 1 << 16, MaxWait: time.Millisecond})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			return kafkaconn.E("fetch", err)
		}
	}
	return nil
}

// frontDoor hands what came over HTTP to the log.
type frontDoor struct{ st *stack }

// Produce implements door.Producer.
func (f *frontDoor) Produce(ctx context.Context, ms []door.Message) error {
	if f.st.broker != nil && f.st.broker.Full() {
		return audit.E("produce", audit.KindOverloaded, errors.New("llm.interactions is at its cap"))
	}
	out := make([]kafka.Message, len(ms))
	for i, m := range ms {
		out[i] = kafka.Message{Topic: kafkaconn.Interactions, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			out[i].Headers = append(out[i].Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
	}
	return f.st.producer.Produce(ctx, out)
}

// evaluateText serves seed 002's evaluator.
func evaluateText(ctx context.Context, r door.EvaluateRequest) (any, error) {
	cfg := terms.DefaultConfig()
	set := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	set(&cfg.Mode, r.Mode)
	set(&cfg.Model, r.Model)
	set(&cfg.Check, r.Check)
	cfg.APIKey, cfg.Categories, cfg.CustomTerms = terms.Secret(r.APIKey), r.Categories, r.CustomTerms
	res, err := terms.Evaluate(ctx, cfg, r.Input, r.Output)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	return res, nil
}

package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	gatedoor "github.com/evenhand/evenhand/gates/door"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/door"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
)

// handler is all that this process serves.
func (st *stack) handler() http.Handler {
	deps := door.Deps{
		Decoder: ingest.NewDecoder(st.settings.decoder()), Auth: st.auth,
		Limits:  door.Limits{Message: kafkaconn.MaxMessage},
		OTLP:    st.settings.OTLP,
		Metrics: st.metrics, Logger: st.log, Inline: st.inline, Stopping: st.stopping,
	}
	if st.has(roleAPI) {
		deps.Producer = &frontDoor{st}
		deps.Join = st.writer
		deps.Replay = st.replay
	}
	if st.has(roleAnalyzer) {
		deps.Analyze, deps.Advice, deps.Evaluate = st.analyzer.Analyze, st.analyzer.Advice, st.asking.evaluate
	}
	mux := http.NewServeMux()
	mux.Handle("/", door.Handler(deps))
	if st.graphql != nil {
		st.graphql.mount(mux, st.auth, st.settings.GraphQL.Playground)
	}
	if st.gates != nil && st.has(roleAPI) {
		front := st.auth.Middleware(auth.Read, nil, st.gates.door)
		mux.Handle(gatedoor.Path, front)
		mux.Handle(gatedoor.Path+"/", front)
	}
	if st.gateway != nil {
		st.mountGateway(mux)
	}
	mux.Handle("GET /metrics", st.metrics.Handler())
	mux.Handle("GET /healthz", obs.Healthz())
	checks := st.checks()
	st.metrics.FollowChecks(checks)
	mux.Handle("GET /readyz", obs.Readyz(checks))
	if st.remediates() && st.settings.Linear.WebhookSecret != "" {
		mux.Handle("POST "+linearDoor, st.linearInbox())
	}
	if st.settings.HTTP.Pprof {
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	}
	return mux
}

// checks are what must work for this process's roles: a real query, a real fetch, and room to write.
func (st *stack) checks() (cs []obs.Check) {
	if st.conn != nil {
		cs = append(cs, obs.Check{Name: "store", Run: func(ctx context.Context) error {
			var n uint64
			err := st.conn.QueryRow(ctx, "SELECT count() FROM "+st.chconfig.Database+".ingest_batches").Scan(&n)
			return chconn.Wrap("query", err)
		}})
	}
	if len(st.pipelines) > 0 {
		cs = append(cs, obs.Check{Name: "pipeline", Run: func(context.Context) error { return st.stalled(time.Now()) }})
	}
	if st.remediates() {
		cs = append(cs, obs.Check{Name: "remediation", Run: func(context.Context) error { return st.remedy.state() }})
	}
	if st.judges() {
		cs = append(cs, obs.Check{Name: "judge", Run: func(context.Context) error { return st.judge.state() }})
	}
	if st.producer != nil || len(st.pipelines) > 0 || st.jobs != nil {
		cs = append(cs, obs.Check{Name: "broker", Run: st.fetchOnce})
	}
	if st.engine != nil {
		cs = append(cs, roomCheck(st.settings.folders()))
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
		out[i] = message(m)
	}
	return f.st.producer.Produce(ctx, out)
}

// fits tells what the topic will never take, as far as is known.
func (f *frontDoor) fits(m door.Message) error {
	out := message(m)
	return f.st.producer.Fits(&out)
}

func message(m door.Message) kafka.Message {
	out := kafka.Message{Topic: kafkaconn.Interactions, Key: m.Key, Value: m.Value}
	for _, h := range m.Headers {
		out.Headers = append(out.Headers, kafka.Header{Key: h.Key, Value: h.Value})
	}
	return out
}

package join_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/join"
	"github.com/evenhand/evenhand/sources"
	"github.com/evenhand/evenhand/sources/kafka"
)

// childEnv makes the test binary a joiner at a broker, so that it can be killed.
const childEnv = "EVENHAND_TEST_JOIN_BROKER"

func TestMain(m *testing.M) {
	if addr := os.Getenv(childEnv); addr != "" {
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _, _ = bufio.NewReader(os.Stdin).ReadByte(); cancel() }() // the parent's end is the child's
		if err := run(ctx, brokertest.ConnTo(addr)); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// toInteractions hands events to the log as a door does.
type toInteractions struct{ *kafkaconn.Producer }

func (p toInteractions) Produce(ctx context.Context, ms []ingest.Message) error {
	out := make([]kafkago.Message, len(ms))
	for i, m := range ms {
		out[i] = kafkago.Message{Topic: kafkaconn.Interactions, Key: m.Key, Value: m.Value}
	}
	return p.Producer.Produce(ctx, out)
}

func producer(conn kafkaconn.Config) (*kafkaconn.Producer, join.Options, error) {
	p, err := kafkaconn.NewProducer(conn, kafkaconn.DefaultProducerOptions())
	return p, join.Options{Decoder: ingest.NewDecoder(ingest.Options{}), Producer: toInteractions{p}, DefaultTenant: "acme"}, err
}

// run joins until ctx ends.
func run(ctx context.Context, conn kafkaconn.Config) error {
	p, o, err := producer(conn)
	if err != nil {
		return err
	}
	defer func() { _ = p.Close(context.WithoutCancel(ctx)) }()
	cfg := kafka.DefaultConfig()
	cfg.Topic, cfg.Group = kafkaconn.Calls, kafkaconn.GroupOf(kafkaconn.Calls)
	if failpoint.Enabled {
		cfg.SessionTimeout = time.Second // a killed joiner's partitions are wanted back soon
	}
	source, err := kafka.New(conn, cfg, kafka.Options{})
	if err != nil {
		return err
	}
	jcfg := join.DefaultConfig()
	jcfg.Window = 3 * time.Second
	j, err := join.NewJoiner(jcfg, o, source, p, func(context.Context, []audit.Rejected) error { return nil })
	if err != nil {
		return err
	}
	return j.Run(ctx)
}

// bench is a broker with the topics, and a writer.
type bench struct {
	t      *testing.T
	conn   kafkaconn.Config
	writer *join.Writer
}

func newBench(t *testing.T, conn kafkaconn.Config) *bench {
	t.Helper()
	if _, err := kafkaconn.Ensure(t.Context(), conn, kafkaconn.Topics(2), 1); err != nil {
		t.Fatal(err)
	}
	p, o, err := producer(conn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.Background()) })
	w, err := join.NewWriter(o, p)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, conn, w}
}

// write tells calls from..to: their prompts, or their answers and facts.
func (b *bench) write(from, to int, prompts bool) {
	b.t.Helper()
	var ps []call.Part
	for i := from; i < to; i++ {
		p := call.Part{Format: "otlp", Kind: call.Content, Group: fmt.Sprint("trace ", i), Key: "span", Messages: []call.Message{call.Text("user", fmt.Sprint("question ", i))}}
		if !prompts {
			p.Kind, p.Parent, p.Messages, p.Answers = call.Model, "app", nil, []call.Message{call.Text("assistant", fmt.Sprint("answer ", i))}
			ps = append(ps, call.Part{Format: "otlp", Kind: call.Context, Group: p.Group, Key: "app", Domain: "hr"})
		}
		ps = append(ps, p)
	}
	if err := b.writer.Parts(b.t.Context(), ps); err != nil {
		b.t.Fatal(err)
	}
}

// told reads all events that are there: by id, each different value once.
func (b *bench) told() map[string][]string {
	b.t.Helper()
	scan, err := kafka.NewScanner(b.conn)
	if err != nil {
		b.t.Fatal(err)
	}
	defer scan.Close()
	out := map[string][]string{}
	partitions, err := scan.Partitions(b.t.Context(), kafkaconn.Interactions)
	if err != nil {
		b.t.Fatal(err)
	}
	for part := range partitions {
		start, end, err := scan.Bounds(b.t.Context(), kafkaconn.Interactions, part)
		if err == nil {
			err = scan.Scan(b.t.Context(), kafkaconn.Interactions, part, start, end, func(r sources.Record) {
				if !slices.Contains(out[string(r.Key)], string(r.Value)) {
					out[string(r.Key)] = append(out[string(r.Key)], string(r.Value))
				}
			})
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

// await waits until calls from..to are told, and looks that each is told whole and no other way.
func (b *bench) await(from, to int) {
	b.t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for {
		told, missing := b.told(), 0
		for i := from; i < to; i++ {
			if len(told[id(i)]) == 0 {
				missing++
			}
		}
		if missing == 0 {
			for i := from; i < to; i++ {
				b.whole(i, told[id(i)])
			}
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("%d of %d calls were never told", missing, to-from)
		}
		<-time.After(100 * time.Millisecond)
	}
}

func id(i int) string { return call.ID("acme", fmt.Sprint("trace ", i), "span").String() }

func (b *bench) whole(i int, values []string) {
	b.t.Helper()
	var e struct {
		Response, Domain string
		Messages         []call.Message
	}
	if len(values) != 1 || json.Unmarshal([]byte(values[0]), &e) != nil || e.Response != fmt.Sprint("answer ", i) || e.Domain != "hr" || len(e.Messages) != 1 {
		b.t.Errorf("call %d: %q", i, values)
	}
}

// begin joins in the background.
func (b *bench) begin() (stop func()) {
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, b.conn) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
	}
}

// Calls that come whole, and calls whose halves come before and after a restart.
func joins(t *testing.T, conn kafkaconn.Config) {
	b := newBench(t, conn)
	stop := b.begin()
	b.write(0, 200, true)
	b.write(0, 200, false)
	b.await(0, 200)
	stop()
	b.write(200, 400, true)
	b.write(200, 400, false)
	stop = b.begin()
	defer stop()
	b.await(0, 400)
}

func TestEmbedded(t *testing.T) {
	t.Parallel()
	joins(t, brokertest.Start(t))
}

// TestKafka joins on a real broker.
func TestKafka(t *testing.T) {
	t.Parallel()
	joins(t, brokertest.StartKafka(t).Conn)
}

// A joiner is killed at each point; the next one loses nothing and tells nothing otherwise.
func TestKilled(t *testing.T) {
	if !failpoint.Enabled {
		t.Skip("built without the tag failpoints: nothing can be killed")
	}
	b := newBench(t, brokertest.Start(t))
	b.shortSessions()
	const n = 50
	for i, point := range failpoint.Calls() {
		from, to := i*n, (i+1)*n
		b.write(from, to, true)
		b.write(from, to, false)
		skip := 0
		if point == failpoint.CallsClosed {
			skip = n / 2
		}
		b.child(point, skip)
		b.child("", 0, from, to)
	}
	b.await(0, n*len(failpoint.Calls()))
}

// shortSessions lets a killed joiner be missed after a second.
func (b *bench) shortSessions() {
	b.t.Helper()
	if err := brokertest.ShortSessions(b.t.Context(), b.conn.Brokers[0], time.Second); err != nil {
		b.t.Fatal(err)
	}
}

// child runs a joiner until it is killed at a point, or until calls are told.
func (b *bench) child(point string, skip int, calls ...int) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+b.conn.Brokers[0], "FAILPOINT="+point, fmt.Sprint("FAILPOINT_SKIP=", skip))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if len(calls) > 0 {
		b.await(calls[0], calls[1])
		_ = in.Close()
	}
	err = cmd.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch killed := status.Signal() == syscall.SIGKILL; {
	case point == "" && err != nil, point != "" && (!killed || ctx.Err() != nil):
		b.t.Fatalf("%s: %v %s", point, err, strings.TrimSpace(out.String()))
	}
}

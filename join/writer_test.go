package join

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

type logFunc func(ms []kafka.Message) error

func (f logFunc) Produce(_ context.Context, ms []kafka.Message) error { return f(ms) }

// Whole calls go to the interactions, pieces to the calls; what is refused is named, the rest is taken.
func TestWriter(t *testing.T) {
	w := newWorld(t, 2)
	writer, err := NewWriter(w.options(), callsLog{w})
	if err != nil {
		t.Fatal(err)
	}
	err = writer.Parts(t.Context(), []call.Part{
		{Format: "litellm", Kind: call.Model, Done: true, Tenant: "acme", Group: "g", Key: "k", Messages: user("q")},
		{Format: "otlp", Kind: call.Model, Tenant: "acme", Group: "g", Key: "k2", Messages: placed(3, call.Text("user", "q"))},
		{Format: "otlp", Kind: call.Context, Done: true, Group: "g", Key: "c"},
		{Kind: call.Model, Done: true, Group: "g"},
		{Kind: call.Model, Done: true, Group: "g", Key: "k3", Claimed: "no tenant!"},
		{Kind: call.Model, Group: "g\xff", Key: "k4"},
		{Kind: call.Content, Group: "g", Key: "k5", Messages: []call.Message{{Role: "user", Content: []byte("{")}}},
	})
	var refused *RefusedError
	if audit.KindOf(err) != audit.KindInvalid || !errors.As(err, &refused) || len(refused.Refused) != 4 || refused.Of != 7 {
		t.Fatal(err)
	}
	var codes []string
	for i, r := range refused.Refused {
		if codes = append(codes, r.Faults[0].Code); r.Index != i+3 {
			t.Errorf("%+v", r)
		}
	}
	if got := strings.Join(codes, " "); got != "missing_field bad_value invalid_utf8 bad_json" {
		t.Error(got)
	}
	if es := w.only("acme", "g", "k"); len(es) != 1 || len(w.events) != 1 {
		t.Errorf("%+v", w.told())
	}
	var rs []sources.Record
	for _, part := range w.log {
		rs = append(rs, part...)
	}
	if len(rs) != 2 || string(rs[0].Key) != "g" || len(rs[0].Headers) != 1 || string(rs[0].Headers[0].Value) != "acme" || len(rs[1].Headers) != 0 {
		t.Fatalf("%+v", rs)
	}
	if p, err := decode(rs[0].Value); err != nil || p.Key != "k2" || p.Messages[0].N != 3 || p.Kind != call.Model {
		t.Errorf("%+v %v", p, err)
	}
	w.want(map[string]int{"part litellm model": 1, "part otlp context": 1, "called litellm": 1})
}

// The class of an error says what the sender does next.
func TestWriterErrors(t *testing.T) {
	w := newWorld(t, 1)
	piece := []call.Part{{Kind: call.Context, Group: "g", Key: "a"}, {Kind: call.Context, Group: "g", Key: "b"}}
	full := audit.E("produce", audit.KindOverloaded, errors.New("full"))
	large := audit.E("produce", audit.KindInvalid, kafkaconn.MessageErrors{nil, errors.New("too large")})
	for _, tc := range []struct {
		err  error
		want audit.Kind
	}{{full, audit.KindOverloaded}, {large, audit.KindInvalid}, {errors.New("?"), audit.KindInternal}} {
		writer, err := NewWriter(w.options(), logFunc(func([]kafka.Message) error { return tc.err }))
		if err != nil {
			t.Fatal(err)
		}
		err = writer.Parts(t.Context(), piece)
		var refused *RefusedError
		if audit.KindOf(err) != tc.want || errors.As(err, &refused) != (tc.want == audit.KindInvalid) {
			t.Errorf("%v: %v", tc.err, err)
		}
		if refused != nil && (len(refused.Refused) != 1 || refused.Refused[0].Index != 1 || refused.Refused[0].Faults[0].Code != ingest.TooLarge) {
			t.Errorf("%+v", refused)
		}
	}
}

// lines is a format: a whole call a line, a piece where it begins with "+".
type lines struct{}

func (lines) Name() string { return "lines" }
func (lines) Parts(p call.Payload) (ps []call.Part, err error) {
	for i, line := range strings.Split(string(p.Body), "\n") {
		switch line {
		case "break":
			panic("secret")
		case "":
			return ps, audit.E("lines", audit.KindInvalid, errors.New("a line is empty"))
		}
		q := call.Part{Format: "lines", Kind: call.Model, Done: line[0] != '+', Tenant: p.Tenant, Group: p.Header("group"), Key: string(rune('a' + i)), Messages: user(line)}
		if line == "bad" {
			q.Claimed = "no tenant!"
		}
		ps = append(ps, q)
	}
	return ps, nil
}

// foreign is a world whose topic is another.
type foreign struct{ *world }

func (f foreign) Run(ctx context.Context, serve func(context.Context, sources.Generation) error) error {
	return serve(ctx, f)
}
func (foreign) Topic() string { return "otlp_spans" }

// A foreign topic is read record by record; what is not of its format, or tells what cannot be an event, is a dead
// letter. Whatever breaks down, nothing is lost and nothing told otherwise.
func TestReader(t *testing.T) {
	for k := 0; ; k++ {
		w, calls := newWorld(t, 1), newWorld(t, 1)
		w.step = 0
		for i, body := range []string{"one\ntwo", "rest\n", "break", "three\nbad\nbad", "+four", "five"} {
			m := kafka.Message{Key: []byte("k"), Value: []byte(body), Headers: []kafka.Header{{Key: "group", Value: []byte{byte('0' + i)}}}}
			if i == 0 {
				m.Headers = append(m.Headers, kafka.Header{Key: ingest.HeaderTenant, Value: []byte("acme")})
			}
			w.append(m)
			w.now = w.now.Add(time.Second)
		}
		run := func(left int) {
			w.left = left
			writer, err := NewWriter(w.options(), logFunc(func(ms []kafka.Message) error {
				for _, m := range ms {
					calls.append(m)
				}
				return nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := withCancel(t)
			w.cancel = cancel
			if err := NewReader(foreign{w}, lines{}, writer, w.bury).Run(ctx); err != nil {
				t.Fatal(err)
			}
		}
		run(k)
		crashed := w.left == 0
		run(-1)
		told := w.told()
		for id, es := range told {
			if len(es) != 1 {
				t.Errorf("crash %d: %s told %d times differently", k, id, len(es))
			}
		}
		if len(told) != 5 || len(w.only("acme", "0", "b")) != 1 || len(calls.log[0]) == 0 || w.committed[0] != 6 {
			t.Errorf("crash %d: %d told, %d pieces, position %d", k, len(told), len(calls.log[0]), w.committed[0])
		}
		if e := w.only("default", "5", "a"); len(e) != 1 || e[0].Timestamp != "2026-11-22T12:00:05.000Z" {
			t.Errorf("crash %d: %+v", k, e)
		}
		letters := map[string]bool{}
		for _, r := range w.letters {
			letters[r.Reason+" "+r.Detail] = true
			if strings.Contains(r.Detail, "secret") || r.Origin.Topic != "otlp_spans" {
				t.Errorf("%+v", r)
			}
		}
		if len(letters) != 3 || !letters["bad_format the decoder of lines broke down"] || !letters["bad_format lines: a line is empty"] {
			t.Errorf("crash %d: %v", k, letters)
		}
		if !crashed || t.Failed() {
			if k < 5 {
				t.Errorf("only %d crashes", k)
			}
			return
		}
	}
}

package join

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/pricing"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sources"
)

func text(k string, p call.Part) call.Part {
	p.Format, p.Group, p.Key = "otlp", "trace", k
	return p
}

func (w *world) only(tenant, group, key string) []event {
	return w.told()[call.ID(tenant, group, key).String()]
}

func (w *world) want(counts map[string]int) {
	w.t.Helper()
	for what, n := range counts {
		if w.counts[what] != n {
			w.t.Errorf("%s: %d, want %d", what, w.counts[what], n)
		}
	}
}

// What comes within the window of the last part joins; what comes later finds the call told.
func TestLateParts(t *testing.T) {
	w := newWorld(t, 1)
	w.most = 1
	w.put(29*time.Second, text("k", call.Part{Kind: call.Content, Messages: user("q"), Claimed: "acme"}))
	w.put(30*time.Second, text("k", call.Part{Kind: call.Model, Parent: "o", Model: "m", Withheld: true}))
	// The window is over: a copy, a wrapper of the told call and what held for it add nothing.
	w.put(time.Second, text("k", call.Part{Kind: call.Model, Parent: "o", Messages: user("q")}))
	w.put(time.Second, text("o", call.Part{Kind: call.Outer, Messages: user("q")}))
	w.put(time.Second, text("c", call.Part{Kind: call.Context, Domain: "hr"}))
	// The answer does, and so does another call of the trace, which inherits from what was told.
	w.put(time.Second, text("k", call.Part{Kind: call.Content, Answers: reply("a")}))
	w.put(time.Second, text("k2", call.Part{Kind: call.Model, Parent: "k", Messages: user("q2")}))
	w.join()
	es := w.only("acme", "trace", "k")
	if len(es) != 2 || es[0].text() != "user:q → " || es[1].text() != "→ a" || es[1].Model != "m" || es[1].Tenant != "acme" {
		t.Errorf("%+v", es)
	}
	if es := w.only("default", "trace", "k2"); len(es) != 1 || es[0].text() != "user:q2 → " {
		t.Errorf("%+v", w.told())
	}
	w.want(map[string]int{"called otlp": 3, "late dropped": 3, "late told_again": 1, "late repeated": 0, "forced": 0})
}

// A call may be larger than its parts, and than the log takes: its texts are cut, and the event says so.
func TestLargeCallsAreCut(t *testing.T) {
	w := newWorld(t, 1)
	long := strings.Repeat("All is well. ", 400_000/13)
	for i := range 5 {
		w.put(0, text("k", call.Part{Kind: call.Content, Messages: placed(i, call.Text("user", long)), Claimed: "acme", Metadata: map[string]any{"own": "x"}}))
	}
	w.put(0, text("k", call.Part{Kind: call.Model, Model: "m", Answers: reply(long + "the end")}))
	w.join()
	es := w.only("acme", "trace", "k")
	if len(es) != 1 || len(w.letters) != 0 {
		t.Fatalf("%d events, %d letters", len(es), len(w.letters))
	}
	e := es[0]
	if len(e.Messages) != 5 || len(e.text()) > 1<<20 || !strings.HasPrefix(e.text(), "user:All is well.") || !e.truncated {
		t.Errorf("%d messages, %d bytes, truncated: %t", len(e.Messages), len(e.text()), e.truncated)
	}
	if e.Metadata["text_cut_at"] != 128.0*1024 || e.Metadata["own"] != "x" {
		t.Errorf("%v", e.Metadata)
	}
}

// A group that gets parts without end is told after a minute; the rest of it goes on.
func TestNoGroupIsOpenForEver(t *testing.T) {
	w := newWorld(t, 1)
	for i := range 8 {
		w.put(10*time.Second, text(string(rune('a'+i)), call.Part{Kind: call.Model, Messages: user("q")}))
	}
	var early int
	w.until = func(w *world) bool {
		if early == 0 {
			early = len(w.events)
		}
		return len(w.events) == 8
	}
	w.join()
	if early != 6 {
		t.Errorf("%d told at the end of the log, want the six of the first minute", early)
	}
}

// A log that is read late closes nothing early: our clock counts only once all was read.
func TestBacklog(t *testing.T) {
	w := newWorld(t, 1)
	w.put(20*time.Second, text("k", call.Part{Kind: call.Content, Messages: user("q")}))
	for range 50 {
		w.put(0, call.Part{Kind: call.Context, Group: "other", Key: "c"})
	}
	w.put(0, text("k", call.Part{Kind: call.Content, Answers: reply("a")}))
	w.most = 1
	w.now = w.now.Add(3 * time.Hour)
	w.join()
	if es := w.only("default", "trace", "k"); len(es) != 1 || es[0].text() != "user:q → a" {
		t.Errorf("%+v", w.told())
	}
}

// A repeated request says nothing twice.
func TestRepeatedParts(t *testing.T) {
	w := newWorld(t, 1)
	for range 3 {
		w.put(time.Second, text("k", call.Part{Kind: call.Content, Messages: user("q"), Time: noon}))
		w.put(time.Second, text("k", call.Part{Kind: call.Content, Answers: reply("a"), Time: noon}))
	}
	w.join()
	if es := w.only("default", "trace", "k"); len(es) != 1 || es[0].text() != "user:q → a" {
		t.Errorf("%+v", es)
	}
	w.want(map[string]int{"late repeated": 4})
}

// Who knows another tenant's trace ids joins nothing to its calls.
func TestTenantsAreNotJoined(t *testing.T) {
	w := newWorld(t, 1)
	w.put(time.Second, text("k", call.Part{Kind: call.Model, Tenant: "acme", Parent: "c", Messages: user("q")}))
	w.put(time.Second, text("k", call.Part{Kind: call.Content, Tenant: "beta", Claimed: "acme", Answers: reply("a")}))
	w.put(time.Second, text("c", call.Part{Kind: call.Context, Tenant: "beta", Domain: "hr"}))
	w.put(time.Second, text("k", call.Part{Kind: call.Model, Messages: user("stray")}))
	w.join()
	for tenant, want := range map[string]string{"acme": "user:q → ", "beta": "→ a", "default": "user:stray → "} {
		if es := w.only(tenant, "trace", "k"); len(es) != 1 || es[0].text() != want || (es[0].Domain != "") != (tenant == "beta") || es[0].Tenant != tenant {
			t.Errorf("%s: %+v", tenant, es)
		}
	}
	for _, m := range w.events {
		var header string
		for _, h := range m.Headers {
			if h.Key == ingest.HeaderTenant {
				header = string(h.Value)
			}
		}
		if strings.Contains(string(m.Value), "stray") != (header == "") {
			t.Errorf("header %q", header)
		}
	}
}

// What cannot become an event is a dead letter that can be sent again, and holds nothing up.
func TestDeadLetters(t *testing.T) {
	w := newWorld(t, 1)
	w.append(kafka.Message{Value: []byte("{}")})
	w.append(kafka.Message{Key: []byte("g"), Value: []byte(`{"v":1,"kind":secret}`)})
	w.append(kafka.Message{Key: []byte("g"), Value: []byte(`{"v":2,"group":"g","key":"k"}`)})
	w.append(kafka.Message{Key: []byte("g"), Value: []byte(`{"v":1,"group":"g"}`)})
	w.append(kafka.Message{Key: []byte("g"), Value: []byte(`{"v":1,"group":"g","key":"k","kind":7}`)})
	w.put(0, text("bad", call.Part{Kind: call.Model, Claimed: "no tenant!", Messages: user("secret")}))
	w.put(0, text("good", call.Part{Kind: call.Model, Messages: user("q")}))
	w.join()
	var got []string
	for _, r := range w.letters {
		if strings.Contains(r.Detail, "secret") || r.Origin.Topic != kafkaconn.Calls {
			t.Errorf("%+v", r)
		}
		got = append(got, r.Reason+": "+r.Detail)
	}
	want := strings.Join([]string{
		"missing_field: the record has no key, which names its group", "bad_json: not JSON: fault at byte 15", "bad_json: version 2 of a part is not known here",
		"bad_json: a part wants a group and a key", "bad_json: a value of the wrong type at byte 37",
	}, "\n")
	if all := strings.Join(got, "\n"); !strings.HasPrefix(all, want) || len(got) != 6 || !strings.Contains(got[5], "bad_value: tenant_id: ") {
		t.Errorf("%s", all)
	}
	if len(w.only("default", "trace", "good")) != 1 || len(w.events) != 1 {
		t.Errorf("%+v", w.told())
	}
	// The claim is mended by a credential, say, and the letter sent again.
	last := w.letters[5]
	p, err := decode(last.Value)
	if err != nil || string(last.Key) != "trace" || p.Kind != call.Model || p.Messages == nil {
		t.Errorf("%+v %v", p, err)
	}
}

// A letter that is sent again without the mend is rejected again, by the joiner that remembers it, too; the letters know
// of each other, so that of many rejections of one call one is sent.
func TestLettersSentAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.put(0, text("bad", call.Part{Kind: call.Model, Claimed: "no tenant!", Messages: user("q")}))
	w.put(0, text("good", call.Part{Kind: call.Model, Messages: user("q")}))
	id := "01a1fdf4-1904-7055-bf3b-caa280a64776"
	j, err := NewJoiner(w.cfg, w.options(), w, callsLog{w}, func(_ context.Context, rs []audit.Rejected) error {
		return w.effect(func() {
			w.letters = append(w.letters, rs...)
			if n := len(w.letters); n < 3 {
				hs := []kafka.Header{{Key: ingest.HeaderEventID, Value: []byte(id)}, {Key: "dlq_attempts", Value: []byte{byte('0' + n)}}}
				w.append(kafka.Message{Key: rs[0].Key, Value: rs[0].Value, Headers: hs})
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w.cancel = cancel
	if err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range w.letters {
		line := []string{r.Reason}
		for _, h := range r.Header {
			line = append(line, h.Key+"="+string(h.Value))
		}
		got = append(got, strings.Join(line, " "))
	}
	if diff := cmp.Diff([]string{"bad_value", "bad_value evenhand-event-id=" + id + " dlq_attempts=1", "bad_value evenhand-event-id=" + id + " dlq_attempts=2"}, got); diff != "" {
		t.Error(diff)
	}
	if len(w.events) != 1 || w.counts["dropped"] != 0 {
		t.Errorf("%d events, %v", len(w.events), w.counts)
	}
}

// Calls without texts are told, and counted; the operator hears what to do once an hour.
func TestWithheld(t *testing.T) {
	w := newWorld(t, 1)
	w.put(0, text("a", call.Part{Kind: call.Model, Service: "desk", Withheld: true}))
	w.put(0, text("b", call.Part{Kind: call.Model, Service: "desk"}))
	w.put(0, text("c", call.Part{Kind: call.Model, Service: "desk", System: "s"}))
	w.join()
	if w.want(map[string]int{"withheld": 2, "called otlp": 3}); len(w.events) != 3 {
		t.Error(len(w.events))
	}
	var s silent
	warned := 0
	for i := range 300 {
		for range 2 {
			if name, warn := s.name(strings.Repeat("x", i), noon); warn {
				warned++
			} else if i > 200 && name != "other" {
				t.Fatal(name)
			}
		}
	}
	if warned != maxServices+1 {
		t.Errorf("%d warnings", warned)
	}
	if _, warn := s.name("x", noon.Add(sayAgain)); !warn {
		t.Error("no second warning after an hour")
	}
	for _, format := range []string{"otlp", "litellm", "other"} {
		if m := Mend(format, "desk"); !strings.HasPrefix(m, "content capture is off in service desk: set ") {
			t.Error(m)
		}
	}
}

// Texts that are there and not read are not said to be kept back, also where a part without them tells of the same call.
func TestUnread(t *testing.T) {
	w := newWorld(t, 1)
	var log bytes.Buffer
	w.logger = slog.New(slog.NewTextHandler(&log, nil))
	w.put(0, text("a", call.Part{Kind: call.Model, Service: "desk", Withheld: true}))
	w.put(0, text("a", call.Part{Kind: call.Model, Service: "desk", Withheld: true, Unread: []string{"request_data", "response_data"}}))
	w.put(0, text("b", call.Part{Kind: call.Model, Service: "mail", Withheld: true, Unread: []string{"request_data"}}))
	w.put(0, text("b", call.Part{Kind: call.Content, Service: "mail", Answers: reply("a")}))
	w.join()
	w.want(map[string]int{"withheld": 1, "called otlp": 2})
	if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, `msg="texts of a form that is not read" service=desk format=otlp attributes="request_data, response_data" mend="send`) {
		t.Error(s)
	}
}

// What names a model and is not read as its call is counted apart.
func TestPassed(t *testing.T) {
	w := newWorld(t, 1)
	writer, err := NewWriter(w.options(), callsLog{w})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.Parts(t.Context(), []call.Part{text("a", call.Part{Kind: call.Context, Passed: true}), text("b", call.Part{Kind: call.Context})}); err != nil {
		t.Fatal(err)
	}
	w.want(map[string]int{"part otlp passed": 1, "part otlp context": 1})
}

func TestPricesAndTimes(t *testing.T) {
	w := newWorld(t, 1)
	prices, err := pricing.Parse([]byte("m: {prompt: 1, response: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	n, own := int32(10), 0.5
	o := w.options()
	o.Prices = prices
	writer, err := NewWriter(o, callsLog{w})
	if err != nil {
		t.Fatal(err)
	}
	parts := []call.Part{
		{Kind: call.Model, Done: true, Group: "g", Key: "a", Model: "m", Tokens: [2]*int32{&n, &n}, Messages: user("q")},
		{Kind: call.Model, Done: true, Group: "g", Key: "b", Model: "m", Tokens: [2]*int32{&n, &n}, Messages: user("q"), CostUSD: &own},
	}
	if err := writer.Parts(t.Context(), parts); err != nil {
		t.Fatal(err)
	}
	if a, b := w.only("default", "g", "a")[0], w.only("default", "g", "b")[0]; *a.Cost != 0.00003 || *b.Cost != own || parts[0].CostUSD != nil {
		t.Errorf("%v %v", *a.Cost, *b.Cost)
	}
	// A call that tells no time has that of its first record, each time it is read.
	w.put(time.Second, text("k", call.Part{Kind: call.Model, Messages: user("q")}))
	w.put(time.Second, text("k", call.Part{Kind: call.Content, Answers: reply("a")}))
	w.join()
	if e := w.only("default", "trace", "k")[0]; e.Timestamp != "2026-11-22T12:00:00.000Z" {
		t.Error(e.Timestamp)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Window: 61 * time.Second, Groups: 1, MemoryBytes: 1 << 20}} {
		if _, err := NewJoiner(c, newWorld(t, 1).options(), nil, nil, nil); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "join.window") {
			t.Error(err)
		}
	}
	if _, err := NewJoiner(DefaultConfig(), Options{}, nil, nil, nil); audit.KindOf(err) != audit.KindInvalid {
		t.Error(err)
	}
}

// What the topic no longer holds is told, and reading goes on.
func TestGap(t *testing.T) {
	w := newWorld(t, 1)
	e, err := newEvents(w.options())
	if err != nil {
		t.Fatal(err)
	}
	ch, err := e.chunk(t.Context(), outside{w}, 0, 3, 1)
	if err != nil || ch.Next != 7 || len(ch.Records) != 0 {
		t.Errorf("%+v %v", ch, err)
	}
	if _, err := e.chunk(t.Context(), outside{w}, 0, 10, 1); !errors.Is(err, sources.ErrGenerationEnded) {
		t.Errorf("a topic that was made anew: %v", err)
	}
	for committed, want := range map[int64]int64{-1: 7, 3: 7, 7: 7, 8: 8, 9: 9, 10: 7} {
		w.committed[0] = committed
		if at, err := e.positions(t.Context(), outside{w}); err != nil || at[0] != want {
			t.Errorf("position %d: %v %v, want %d", committed, at, err, want)
		}
	}
	w.want(map[string]int{"gap 3 6": 2})
}

// A broker that is away is tried again; nothing is told twice by that but the same.
func TestRetries(t *testing.T) {
	w := newWorld(t, 1)
	w.put(0, text("k", call.Part{Kind: call.Model, Messages: user("q")}))
	e, err := newEvents(w.options())
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	err = e.retry(t.Context(), "produce", func(ctx context.Context) error {
		if tries++; tries < 3 {
			return audit.E("x", audit.KindUnavailable, errors.New("away"))
		}
		return nil
	}, never)
	if err != nil || tries != 3 {
		t.Error(tries, err)
	}
	w.want(map[string]int{"retried produce unavailable": 2})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.retry(ctx, "produce", func(context.Context) error { return errCrash }, never); audit.KindOf(err) != audit.KindUnavailable {
		t.Error(err)
	}
}

package remediation

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/sinks/linear"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

func sign(body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// paper keeps what is published.
type paper struct {
	down  bool
	notes []note
}

func (p *paper) Publish(_ string, messages ...*message.Message) error {
	if p.down {
		return audit.E("paper", audit.KindUnavailable, errors.New("away"))
	}
	for _, m := range messages {
		n, err := readNote(m.Payload)
		if err != nil {
			return err
		}
		p.notes = append(p.notes, n)
	}
	return nil
}

// The door takes what Linear signed just now, once, and tells Linear to come again when it cannot keep it.
func TestInbox(t *testing.T) {
	cfg := enginetest.Database(t)
	migratetest.Run(t, cfg)
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	pub := &paper{}
	in := &Inbox{Outbox: NewOutbox(enginetest.Conn(t, cfg), cfg.Database), Publisher: pub, Target: linear.Name, Secret: secret,
		Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return now }}
	issue := audit.DerivedV4("issue")
	body := func(at time.Time) string {
		return fmt.Sprintf(`{"action":"update","type":"Issue","webhookTimestamp":%d,"data":{"id":%q,"state":{"type":"completed"}},"updatedFrom":{"x":1}}`, at.UnixMilli(), issue)
	}
	for _, tc := range []struct {
		name, body, signature, delivery string
		down                            bool
		status, published               int
	}{
		{"as it should be", body(now), sign(body(now)), "a", false, 200, 1},
		{"again", body(now), sign(body(now)), "a", false, 200, 0},
		{"no signature", body(now), "", "b", false, 401, 0},
		{"another's signature", body(now), strings.Repeat("0", 64), "b", false, 401, 0},
		{"a signature of something else", body(now), sign(body(now) + " "), "b", false, 401, 0},
		{"not hexadecimal", body(now), "xx", "b", false, 401, 0},
		{"old", body(now.Add(-61 * time.Second)), sign(body(now.Add(-61 * time.Second))), "b", false, 401, 0},
		{"from the future", body(now.Add(61 * time.Second)), sign(body(now.Add(61 * time.Second))), "b", false, 401, 0},
		{"a little old", body(now.Add(-59 * time.Second)), sign(body(now.Add(-59 * time.Second))), "b", false, 200, 1},
		{"no delivery id", body(now), sign(body(now)), "", false, 400, 0},
		{"no JSON", "hello", sign("hello"), "c", false, 400, 0},
		{"too large", strings.Repeat(" ", 2<<20), "", "c", false, 413, 0},
		{"again under another id, which nobody signed", body(now), sign(body(now)), "f", false, 200, 0},
		{"Linear's own repetition, at another time", body(now.Add(2 * time.Second)), sign(body(now.Add(2 * time.Second))), "a", false, 200, 0},
		{"the log is away", body(now.Add(time.Second)), sign(body(now.Add(time.Second))), "d", true, 503, 0},
		{"and back", body(now.Add(time.Second)), sign(body(now.Add(time.Second))), "d", false, 200, 1},
	} {
		pub.down, pub.notes = tc.down, nil
		r := httptest.NewRequest(http.MethodPost, "/v1/linear/webhook", strings.NewReader(tc.body))
		r.Header.Set("Linear-Signature", tc.signature)
		r.Header.Set("Linear-Delivery", tc.delivery)
		w := httptest.NewRecorder()
		in.ServeHTTP(w, r)
		if w.Code != tc.status || len(pub.notes) != tc.published {
			t.Errorf("%s: status %d, %d published", tc.name, w.Code, len(pub.notes))
		}
		if tc.published > 0 && pub.notes[0].Issue != issue {
			t.Errorf("%s: %+v", tc.name, pub.notes[0])
		}
	}
	comment := fmt.Sprintf(`{"action":"create","type":"Comment","webhookTimestamp":%d,"data":{"body":"hello"}}`, now.UnixMilli())
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(comment))
	r.Header.Set("Linear-Signature", sign(comment))
	r.Header.Set("Linear-Delivery", "e")
	w := httptest.NewRecorder()
	pub.notes = nil
	if in.ServeHTTP(w, r); w.Code != 200 || len(pub.notes) != 0 {
		t.Errorf("a comment: status %d, %d published", w.Code, len(pub.notes))
	}
}

// Who moved an issue is known where the delivery says that it did move, and by whom.
func TestWhoMovedAnIssue(t *testing.T) {
	for _, tc := range []struct{ actor, before, want string }{
		{`{"id":"u1","type":"user","name":"Ann Other"}`, `{"stateId":"s1","updatedAt":"x"}`, "Ann Other"},
		{`{"id":"u1","type":"user"}`, `{"stateId":"s1"}`, "u1"},
		{`{"id":"u1","name":"Ann Other"}`, `{"title":"before"}`, ""},
		{`{"id":"u1","name":"Ann Other"}`, `null`, ""},
		{`null`, `{"stateId":"s1"}`, ""},
		{`"Ann"`, `{"stateId":"s1"}`, ""},
		{`{"name":"` + strings.Repeat("é", 200) + `"}`, `{"stateId":"s1"}`, strings.Repeat("é", 100)},
	} {
		d, err := parseDelivery([]byte(`{"action":"update","type":"Issue","webhookTimestamp":1,"data":{"id":"x","state":{"type":"completed"}},"actor":` + tc.actor + `,"updatedFrom":` + tc.before + `}`))
		if err != nil || d.By != tc.want {
			t.Errorf("%s, before %s: %q, %v; want %q", tc.actor, tc.before, d.By, err, tc.want)
		}
	}
	if d, err := parseDelivery([]byte(`{"action":"update","type":"Issue","webhookTimestamp":1,"data":{"id":"x","state":{"type":"completed"}}}`)); err != nil || d.By != "" {
		t.Errorf("without an actor: %+v %v", d, err)
	}
}

// Who closed an issue, and who opened it again, stands with the transition; who is said to have done what the issue does
// not show did not.
func TestWhoMovedAnIssueIsKept(t *testing.T) {
	f := newFixture(t)
	s := f.service()
	f.run(s)
	b := f.decide(breach("charter.age"), "open", "breached")
	f.until(s, "the issue", f.settled(3))
	for _, tc := range []struct {
		to     string
		by     string
		closed bool
		state  audit.BreachState
		want   string
	}{{"completed", "Ann Other", true, audit.BreachMitigated, "Ann Other"}, {"started", "Bo", false, audit.BreachOpen, "Bo"}, {"canceled", "Cid", false, audit.BreachMitigated, ""}} {
		f.stub.Move(t, "BIAS-1", tc.to)
		if err := s.publish(note{Target: linear.Name, Issue: issueID(linear.Name, &b), By: tc.by, Closed: tc.closed}); err != nil {
			t.Fatal(err)
		}
		f.until(s, tc.to, func() bool { return f.newest(b).State == tc.state })
		if got := f.newest(b).By; got != tc.want {
			t.Errorf("%s: by %q, want %q", tc.to, got, tc.want)
		}
	}
}

// Closed, closed again, opened by a person, old news after new: the breach follows the issue as it is.
func TestWebhooksInAnyOrder(t *testing.T) {
	f := newFixture(t)
	server := f.inbox()
	s := f.service()
	f.run(s)
	b := f.decide(breach("charter.age"), "open", "breached")
	f.until(s, "the issue", f.settled(3))
	is := f.stub.State(t).Issues[0]
	state := func(want audit.BreachState, reason string, seq uint32) {
		t.Helper()
		f.until(s, string(want)+" for "+reason, func() bool {
			got := f.newest(b)
			return got.State == want && got.Reason == reason && got.Seq == seq
		})
	}
	payload := map[string]any{"action": "update", "type": "Issue", "data": map[string]any{"id": is.ID, "state": map[string]any{"type": "completed"}}}

	// News that the issue is completed, though it is not: the issue itself says so.
	f.stub.Deliver(t, map[string]any{"payload": payload})
	f.stub.Move(t, "BIAS-1", "started")
	f.stub.Move(t, "BIAS-1", "canceled")
	state(audit.BreachMitigated, "canceled", 2)
	f.stub.Deliver(t, map[string]any{"payload": payload})
	f.stub.Deliver(t, map[string]any{"payload": payload})
	f.stub.Move(t, "BIAS-1", "started")
	state(audit.BreachOpen, ReasonReopened, 3)
	f.stub.Move(t, "BIAS-1", "duplicate")
	state(audit.BreachMitigated, "duplicate", 4)

	// The breach returns while Linear is away: old news of the closing must not mitigate it again.
	f.gate.shut.Store(true)
	f.decide(b, "open", "returned")
	for range 3 {
		if d := f.stub.Deliver(t, map[string]any{"payload": payload}); d.Status != 200 {
			t.Errorf("%+v", d)
		}
	}
	f.gate.shut.Store(false)
	f.until(s, "opened again", func() bool { return f.settled(5)() && f.stub.State(t).Issues[0].State == "Triage" })
	state(audit.BreachOpen, "returned", 5)
	f.stub.Move(t, "BIAS-1", "completed")
	state(audit.BreachMitigated, "completed", 6)
	f.exactly(map[audit.ID][]string{b.ID: {returned}})

	// Refused at the door, and a breach that is nobody's.
	for _, how := range []map[string]any{{"payload": payload, "badSignature": true}, {"payload": payload, "timestamp": time.Now().Add(-2 * time.Minute).UnixMilli()}} {
		if d := f.stub.Deliver(t, how); d.Status != http.StatusUnauthorized {
			t.Errorf("%+v", d)
		}
	}
	payload["data"] = map[string]any{"id": audit.DerivedV4("somebody else's").String(), "state": map[string]any{"type": "completed"}}
	if d := f.stub.Deliver(t, map[string]any{"payload": payload}); d.Status != 200 {
		t.Errorf("%+v", d)
	}
	res, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	state(audit.BreachMitigated, "completed", 6)
	var rows, last uint64
	if err := f.conn.QueryRow(context.Background(), "SELECT count(), toUInt64(max(seq)) FROM "+f.db+".breaches FINAL").Scan(&rows, &last); err != nil || rows != 6 || last != 6 {
		t.Errorf("%d rows, the last is %d: %v", rows, last, err)
	}
}

func FuzzDelivery(f *testing.F) {
	now := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	f.Add([]byte(`{"action":"update","type":"Issue","webhookTimestamp":1795338000000,"data":{"id":"b910a648-ddf1-4f22-ae04-3467fdac9080","state":{"type":"completed"}}}`))
	f.Add([]byte(`{"action":"create","type":"Comment","webhookTimestamp":1,"data":[]}`))
	f.Add([]byte(`{"type":"Issue","data":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := readDelivery(body, sign(string(body)), secret, now)
		if err != nil && (errors.Is(err, errSignature) || err.Error() == "") {
			t.Error(err)
		}
		if err == nil && (d.Type == "" || now.Sub(d.At).Abs() > deliveryWindow || len(d.State) > 100) {
			t.Errorf("%+v", d)
		}
		if _, err := readDelivery(body, sign(string(body)+"x"), secret, now); !errors.Is(err, errSignature) {
			t.Errorf("a wrong signature: %v", err)
		}
	})
}

func FuzzNote(f *testing.F) {
	f.Add([]byte(`{"tenant_id":"acme","breach_id":"b910a648-ddf1-4f22-ae04-3467fdac9080","target":"linear"}`))
	f.Add([]byte(`{"target":"linear","issue":"b910a648-ddf1-4f22-ae04-3467fdac9080"}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		n, err := readNote(payload)
		if err != nil {
			if audit.KindOf(err) != audit.KindInvalid {
				t.Error(err)
			}
			return
		}
		m, err := n.message()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := readNote(m.Payload); err != nil || again != n {
			t.Errorf("%+v is read back as %+v, %v", n, again, err)
		}
	})
}

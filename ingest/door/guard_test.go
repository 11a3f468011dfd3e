package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/detectors"
	inline "github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/guard/guardtest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
)

// taken is what the queues of a door gave to the log.
type taken struct {
	mu     sync.Mutex
	events []Message
	parts  []call.Part
	inline *Inline
}

// inlined gives doors a guard over the shipped rules. The queues end with the test, or with flush.
func inlined(tb testing.TB, d *Deps) *taken {
	tb.Helper()
	return inlinedWith(tb, d, guardtest.Current(tb))
}

func inlinedWith(tb testing.TB, d *Deps, rules *detectors.Current) *taken {
	tb.Helper()
	k := &taken{}
	size := inline.DefaultQueueConfig()
	d.Inline = &Inline{Guard: inline.New(rules, inline.Config{}), Defaults: inline.DefaultOptions()}
	d.Inline.Events = inline.NewQueue(size, inline.QueueOptions[Message]{Send: func(_ context.Context, ms []Message) error {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.events = append(k.events, ms...)
		return nil
	}})
	d.Inline.Parts = inline.NewQueue(size, inline.QueueOptions[call.Part]{
		Key: func(p call.Part) string { return p.Tenant + " " + p.Claimed + " " + p.Group }, Fold: call.Merge,
		Send: func(_ context.Context, ps []call.Part) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.parts = append(k.parts, ps...)
			return nil
		},
	})
	k.inline = d.Inline
	tb.Cleanup(func() { k.flush(tb) })
	return k
}

func (k *taken) flush(tb testing.TB) {
	tb.Helper()
	if err := errors.Join(k.inline.Events.Close(context.Background()), k.inline.Parts.Close(context.Background())); err != nil {
		tb.Error(err)
	}
}

// withoutRoom gives queues that take nothing.
func (k *taken) withoutRoom(failOpen bool) {
	_ = k.inline.Events.Close(context.Background())
	_ = k.inline.Parts.Close(context.Background())
	k.inline.FailOpen = failOpen
}

const emotional = "Women are too emotional to be good executives."

func TestGuard(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		status     int
		want       string // contained in the answer
		eventHas   string // contained in the event, which is not there when this is empty
	}{
		{"clean", `{"response":"The parcel arrives on Monday."}`, 200, `"action":"allow","reasons":[]`, `"response":"The parcel`},
		{"warned", `{"response":"` + emotional + `","options":{"domain":"hr"}}`, 200, `"action":"warn","reasons":["bias"],"domain":"hr"`, `"guard":{"action":"warn","reasons":["bias"]`},
		{"the event's domain", `{"response":"` + emotional + `","domain":"HR"}`, 200, `"action":"warn"`, `"domain":"HR"`},
		{"blocked", `{"response":"` + emotional + `","domain":"hr","options":{"biasAction":"block"},"metadata":{"a":1}}`, 200, `"name":"BiasDetectedError"`, `"metadata":{"a":1,"guard":{"action":"block"`},
		{"its status", `{"response":"` + emotional + `","domain":"hr","status":"success","options":{"biasAction":"block"}}`, 200, `"characteristic":"sex","severity":`, `"status":"blocked"`},
		{"evidence in the answer", `{"response":"` + emotional + `"}`, 200, `"evidence":"Women are too emotional`, `"response"`},
		{"nothing to judge", `{"prompt":"hello"}`, 200, `"reasons":["no_text"]`, `"prompt":"hello"`},
		{"denied where nobody can be asked", `{"response":"I will transfer $5,000 to account 7.","options":{"hitlGate":true}}`, 200, `"name":"HumanGateDeniedError"`, `"status":"blocked"`},
		{"and why", `{"response":"I will transfer $5,000 to account 7.","options":{"hitlGate":true}}`, 200, `"reason":"denied","detail":"no approver is configured","rule":"financial"`, `"guard"`},
		{"a tool call beside text", `{"domain":"hr","options":{"biasAction":"block"},"response":{"choices":[{"message":{"role":"assistant","content":"Let me check.","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"r\":\"` + emotional + `\"}"}}]}}]}}`, 200, `"action":"block","reasons":["bias"],"domain":"hr","check":"response","scores":{"bias":0.6,`, `"status":"blocked"`},
		{"a tool call alone", `{"domain":"hr","options":{"biasAction":"block"},"response":{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"r\":\"` + emotional + `\"}"}}]}}]}}`, 200, `"action":"block","reasons":["bias"],"domain":"hr","check":"response","scores":{"bias":0.6,`, `"status":"blocked"`},
		{"a gate for a tool call beside text", `{"options":{"hitlGate":true},"response":{"content":[{"type":"text","text":"Let me do that."},{"type":"tool_use","id":"c","name":"f","input":{"cmd":"transfer $5,000 to account 12345"}}]}}`, 200, `"reasons":["hitl_gate"]`, `"status":"blocked"`},
		{"a gate for an item of a response", `{"options":{"hitlGate":true},"response":{"output":[{"type":"message","content":[{"type":"output_text","text":"Let me do that."}]},{"type":"function_call","name":"f","arguments":"{\"cmd\":\"transfer $5,000 to account 12345\"}"}]}}`, 200, `"reasons":["hitl_gate"]`, `"status":"blocked"`},
		{"options of null", `{"response":"a","options":null,"wait":null}`, 200, `"allow"`, `"a"`},

		{"unknown domain", `{"response":"a","domain":"hospital"}`, 400, `wants one of general, hr, finance, healthcare, education`, ""},
		{"unknown domain in the options", `{"response":"a","options":{"domain":"hospital"}}`, 400, `"field":"options.domain"`, ""},
		{"two domains", `{"response":"a","domain":"hr","options":{"domain":"finance"}}`, 400, `"options.domain"`, ""},
		{"unknown option", `{"response":"a","options":{"bias":1}}`, 400, `"field":"options.bias"`, ""},
		{"no options", `{"response":"a","options":[]}`, 400, `"field":"options"`, ""},
		{"a bad rule", `{"response":"a","options":{"hitlGate":true,"hitlGateRules":[{"id":"x","description":"d","category":"c","pattern":"("}]}}`, 400, `"field":"options.hitlGateRules[0].pattern"`, ""},
		{"a long wait", `{"response":"a","wait":301}`, 400, `"field":"wait"`, ""},
		{"a broken wait", `{"response":"a","wait":1.5}`, 400, `"field":"wait"`, ""},
		{"unknown field", `{"respose":"a"}`, 400, `"respose"`, ""},
		{"options twice", `{"response":"a","options":{},"options":{}}`, 400, `duplicate_key`, ""},
		{"no JSON", `{"response":`, 400, `bad_json`, ""},
		{"an array", `[{"response":"a"}]`, 400, `wrong_type`, ""},
		{"nothing", ``, 400, `BAD_REQUEST`, ""},
		{"a huge event", `{"response":"` + strings.Repeat("x", 2<<20) + `"}`, 413, `PAYLOAD_TOO_LARGE`, ""},
		{"a text that is stored cut is read whole", `{"response":"` + strings.Repeat("Hello. ", 40<<10) + `Women are too emotional to lead.","domain":"hr"}`, 200, `"warn"`, `Hello`},
		{"a prompt that is stored cut and not checked", `{"response":"a","prompt":"` + strings.Repeat("x", 300<<10) + `"}`, 200, `"allow"`, `xxx`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := deps(&log{})
			k := inlined(t, &d)
			w := send(Handler(d), "POST", "/v1/guard", tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			k.flush(t)
			if (tc.eventHas != "") != (len(k.events) == 1) {
				t.Fatalf("%d events", len(k.events))
			}
			if tc.eventHas == "" {
				return
			}
			if !strings.Contains(string(k.events[0].Value), tc.eventHas) || strings.Contains(string(k.events[0].Value), `"options"`) {
				t.Errorf("%s", k.events[0].Value)
			}
			in, rej := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"}).Decode(record(k.events[0]), audit.Origin{BrokerTime: now})
			if rej != nil || w.Code == 200 && !strings.Contains(w.Body.String(), `"id":"`+in.ID.String()+`"`) {
				t.Errorf("%+v %s", rej, w.Body)
			}
		})
	}
}

// The same id is the same event, whatever is asked about it.
func TestGuardIsIdempotent(t *testing.T) {
	d := deps(&log{})
	k := inlined(t, &d)
	h := Handler(d)
	body := `{"id":"` + uuid7 + `","response":"` + emotional + `","options":{"domain":"hr"}}`
	answers := map[string]bool{}
	for range 3 {
		answer, _, _ := strings.Cut(send(h, "POST", "/v1/guard", body, "Traceparent", parent).Body.String(), `"duration_ms"`)
		answers[answer] = true
	}
	k.flush(t)
	if len(answers) != 1 || len(k.events) != 3 || string(k.events[0].Value) != string(k.events[2].Value) || string(k.events[0].Key) != uuid7 {
		t.Errorf("%v\n%s\n%s", answers, k.events[0].Value, k.events[2].Value)
	}
}

func TestGuardWithoutRoom(t *testing.T) {
	for _, tc := range []struct {
		failOpen   bool
		path, body string
		status     int
		want       string
	}{
		{false, "/v1/guard", `{"response":"a"}`, 429, "OVERLOADED"},
		{true, "/v1/guard", `{"response":"a"}`, 200, `"audited":false`},
		{false, liteLLMDoor, `{"input_type":"response","litellm_call_id":"c","texts":["a"]}`, 503, "UNAVAILABLE"},
		{true, liteLLMDoor, `{"input_type":"response","litellm_call_id":"c","texts":["a"]}`, 200, `"NONE"`},
	} {
		d := deps(&log{})
		inlined(t, &d).withoutRoom(tc.failOpen)
		if w := send(Handler(d), "POST", tc.path, tc.body); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s, fail open %v: %d %s", tc.path, tc.failOpen, w.Code, w.Body)
		}
	}
}

// A decision whose event the topic would not take is not said to be audited.
func TestGuardWithAnEventTooLargeForTheTopic(t *testing.T) {
	for _, tc := range []struct {
		failOpen bool
		body     string
		status   int
		want     string
	}{
		{false, strings.Repeat("a ", 1000), 413, "TOO_LARGE"},
		{true, strings.Repeat("a ", 1000), 200, `"audited":false`},
		{false, "a", 200, `"audited":true`},
	} {
		d := deps(&log{})
		k := inlined(t, &d)
		d.Inline.FailOpen = tc.failOpen
		counts := map[string]int{}
		_ = d.Inline.Events.Close(t.Context())
		d.Inline.Events = inline.NewQueue(inline.DefaultQueueConfig(), inline.QueueOptions[Message]{
			Send: func(context.Context, []Message) error { return nil }, Count: func(outcome string, n int) { counts[outcome] += n },
			Fits: func(m Message) error {
				if len(m.Value) > 1000 {
					return audit.E("test", audit.KindInvalid, errors.New("too large"))
				}
				return nil
			},
		})
		if w := send(Handler(d), "POST", "/v1/guard", `{"response":"`+tc.body+`"}`); w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%d bytes, fail open %v: %d %s", len(tc.body), tc.failOpen, w.Code, w.Body)
		}
		k.flush(t)
		if large := tc.status == 413 || tc.failOpen; (counts[inline.Large] == 1) != large {
			t.Errorf("%d bytes: %v", len(tc.body), counts)
		}
	}
}

// person is a human at the gate.
type person struct {
	mu      sync.Mutex
	asked   []inline.GateRequest
	decided chan inline.GateDecision
	err     error
}

var gateID = audit.DeriveID("gate")

func (p *person) Open(_ context.Context, r inline.GateRequest) (audit.ID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r)
	return gateID, p.err
}

func (p *person) Wait(ctx context.Context, _ audit.ID) (inline.GateDecision, error) {
	select {
	case d := <-p.decided:
		return d, nil
	default:
	}
	select {
	case d := <-p.decided:
		return d, nil
	case <-ctx.Done():
		return inline.GateDecision{}, ctx.Err()
	}
}

func TestGuardWaitsForAPerson(t *testing.T) {
	const body = `{"response":"I will transfer $5,000 to account 7.","provider":"openai","wait":60,"options":{"hitlGate":true,"hitlGateTimeoutMs":120000}}`
	for _, tc := range []struct {
		name  string
		after time.Duration // 0: never
		says  inline.GateDecision
		want  string
	}{
		{"approved", time.Second, inline.GateDecision{Approved: true}, `"action":"allow"`},
		{"denied", time.Second, inline.GateDecision{Reason: inline.Denied, Detail: "too much"}, `"reason":"denied","detail":"too much","rule":"financial"`},
		{"timed out", time.Second, inline.GateDecision{Reason: inline.Timeout}, `"reason":"timeout"`},
		{"not yet", 0, inline.GateDecision{}, `"action":"gate"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			guardtest.Current(t) // before the clock of the bubble begins
			synctest.Test(t, func(t *testing.T) {
				p := &person{decided: make(chan inline.GateDecision, 1)}
				d := deps(&log{})
				k := inlined(t, &d)
				d.Inline.Gates, d.Limits.InFlight = p, 1
				h := Handler(d)
				if tc.after > 0 {
					time.AfterFunc(tc.after, func() { p.decided <- tc.says })
				}
				var w *httptest.ResponseRecorder
				var wg sync.WaitGroup
				wg.Go(func() { w = send(h, "POST", "/v1/guard", body) })
				synctest.Wait()
				if other := send(h, "POST", "/v1/guard", `{"response":"a"}`); other.Code != http.StatusOK {
					t.Errorf("who waits takes the place of others: %d", other.Code)
				}
				wg.Wait()
				if w.Code != 200 || !strings.Contains(w.Body.String(), tc.want) || !strings.Contains(w.Body.String(), `"hitlGateTriggered":true`) || !strings.Contains(w.Body.String(), gateID.String()) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				r := p.asked[0]
				if r.Requester != "anonymous" || len(r.Matches) == 0 || r.Matches[0].Rule != r.Rule || r.Matches[0].Text != r.MatchedText || r.ID.IsZero() {
					t.Errorf("%+v", r)
				}
				if r.Rule.ID != "financial" || r.MatchedText != "transfer $5,000" || r.Provider != "openai" || r.Method != "guard" || r.Timeout != 2*time.Minute || !r.Time.Equal(now) {
					t.Errorf("%+v", r)
				}
				k.flush(t)
			})
		})
	}
	d := deps(&log{})
	inlined(t, &d)
	d.Inline.Gates = &person{err: audit.E("test", audit.KindUnavailable, os.ErrClosed)}
	if w := send(Handler(d), "POST", "/v1/guard", body); w.Code != 503 {
		t.Errorf("nobody can be asked: %d %s", w.Code, w.Body)
	}
}

// What a person decided while the request waited is on record. An event with an id of its own may be sent again until they have: it is the same
// each time.
func TestGuardRecordsWhatAPersonDecided(t *testing.T) {
	const body = `{"response":"I will transfer $5,000 to account 7.","options":{"hitlGate":true}`
	guardtest.Current(t) // before the clock of the bubble begins
	note := func(m Message) string {
		return gjson.GetBytes(m.Value, "status").String() + " " + gjson.GetBytes(m.Value, "metadata.guard.action").String()
	}
	for _, tc := range []struct {
		name, wait string
		says       *inline.GateDecision
		err        error
		status     int
		want       string
	}{
		{"denied", `,"wait":60}`, &inline.GateDecision{Reason: inline.Denied}, nil, 200, "blocked block"},
		{"timed out", `,"wait":60}`, &inline.GateDecision{Reason: inline.Timeout}, nil, 200, "blocked block"},
		{"approved", `,"wait":60}`, &inline.GateDecision{Approved: true}, nil, 200, " allow"},
		{"not yet", `,"wait":60}`, nil, nil, 200, " gate"},
		{"nobody waits", `}`, nil, nil, 200, " gate"},
		{"nobody can be asked", `}`, nil, audit.E("test", audit.KindUnavailable, os.ErrClosed), 503, " gate"},
		{"denied, an id of its own", `,"id":"7","wait":60}`, &inline.GateDecision{Reason: inline.Denied}, nil, 200, " gate"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &person{decided: make(chan inline.GateDecision, 1), err: tc.err}
				d := deps(&log{})
				k := inlined(t, &d)
				d.Inline.Gates = p
				if tc.says != nil {
					time.AfterFunc(time.Second, func() { p.decided <- *tc.says })
				}
				w := send(Handler(d), "POST", "/v1/guard", body+tc.wait)
				k.flush(t)
				if w.Code != tc.status || len(k.events) != 1 || note(k.events[0]) != tc.want {
					t.Fatalf("%d %s, %d events", w.Code, w.Body, len(k.events))
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := &person{decided: make(chan inline.GateDecision, 1)}
		d := deps(&log{})
		k := inlined(t, &d)
		d.Inline.Gates = p
		h := Handler(d)
		send(h, "POST", "/v1/guard", body+`,"id":"7"}`)
		p.decided <- inline.GateDecision{Reason: inline.Denied}
		if w := send(h, "POST", "/v1/guard", body+`,"id":"7"}`); !strings.Contains(w.Body.String(), `"reason":"denied"`) {
			t.Errorf("%s", w.Body)
		}
		k.flush(t)
		if len(k.events) != 2 || !jsonEqual(t, k.events[0].Value, k.events[1].Value) {
			t.Errorf("%s", k.events)
		}
	})
}

func jsonEqual(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal(a, &x), json.Unmarshal(b, &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

// What a block refers to is the event, whoever names its tenant.
func TestLiteLLMRefersToTheEvent(t *testing.T) {
	for _, tc := range []struct{ name, header, more, tenant string }{
		{"nobody", "", "", "default"},
		{"the header", "acme", "", "acme"},
		{"the application", "", `,"request_headers":{"x-tenant":"b"}`, "b"},
	} {
		d := deps(&log{})
		k := inlined(t, &d)
		w := send(Handler(d), "POST", liteLLMDoor, `{"input_type":"response","litellm_call_id":"c","texts":["`+emotional+`"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block"}`+tc.more+`}`, auth.TenantHeader, tc.header)
		k.flush(t)
		if len(k.parts) != 1 {
			t.Fatalf("%s: %d %s", tc.name, w.Code, w.Body)
		}
		p := k.parts[0]
		value, err := p.Event(tc.tenant) // as package join makes it
		if err != nil || p.Tenant+p.Claimed != strings.TrimPrefix(tc.tenant, "default") {
			t.Fatalf("%s: %v %+v", tc.name, err, p)
		}
		if id := gjson.GetBytes(value, "id").String(); id == "" || !strings.Contains(w.Body.String(), "Reference: "+id) {
			t.Errorf("%s: %s is not of %s", tc.name, w.Body, id)
		}
	}
}

// Photos are named in a call's part, as they are on record, and not kept: of some hundred KB they would be more than a message may be.
func TestLiteLLMLeavesPhotosOut(t *testing.T) {
	d := deps(&log{})
	k := inlined(t, &d)
	photo := "data:image/jpeg;base64," + strings.Repeat("iVBORw0K", 700_000/6)
	w := send(Handler(d), "POST", liteLLMDoor, `{"input_type":"request","litellm_call_id":"c","texts":["Who is that?"],"images":["`+photo+`"],"structured_messages":[
		{"role":"user","content":[{"type":"text","text":"Who is that?"},{"type":"image_url","image_url":{"url":"`+photo+`","detail":1.50}}]},{"role":"user","content":"`+photo[:2000]+`"}]}`)
	k.flush(t)
	if w.Code != 200 || len(k.parts) != 1 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	ms := k.parts[0].Messages
	if got, want := string(ms[0].Content), `[{"text":"Who is that?","type":"text"},{"image_url":{"detail":1.50,"url":"(left out: image/jpeg, 699996 bytes)"},"type":"image_url"}]`; got != want {
		t.Errorf("%.300s, want %s", got, want)
	}
	if got := string(ms[1].Content); got != `"`+photo[:2000]+`"` { // a text, whatever it looks like
		t.Errorf("%.300s", got)
	}
}

// What is larger than the log takes is cut, and says so; what is judged is the whole.
func TestLiteLLMCutsWhatIsTooLarge(t *testing.T) {
	long := strings.Repeat("All is well. ", 1_000_000/13)
	turn := `{"role":"user","content":"` + long[:1300] + `"}`
	for name, tc := range map[string]struct {
		body string
		cut  any
		n    int // messages and answers
	}{
		"a long prompt":          {`"input_type":"request","texts":["a"],"structured_messages":[{"role":"user","content":"hi"},{"role":"user","content":[{"type":"text","text":"` + long + `"}]}]`, 256 << 10, 2},
		"a long answer":          {`"input_type":"response","texts":["` + long + emotional + `"]`, 128 << 10, 1},
		"many calls of tools":    {`"input_type":"response","texts":["a"],"tool_calls":[{"id":"1","function":{"name":"f","arguments":"` + long + `"}}]`, 128 << 10, 1},
		"many turns":             {`"input_type":"request","texts":["a"],"structured_messages":[` + turn + strings.Repeat(","+turn, 2000) + `]`, 1 << 10, 500},
		"as large as it may be":  {`"input_type":"request","texts":["a"],"structured_messages":[{"role":"user","content":"` + long[:600_000] + `"}]`, nil, 1},
		"an answer of that kind": {`"input_type":"response","texts":["` + long[:200_000] + `"]`, nil, 1},
	} {
		d := deps(&log{})
		d.Limits.Message = 900_000
		k := inlined(t, &d)
		w := send(Handler(d), "POST", liteLLMDoor, `{"litellm_call_id":"c","additional_provider_specific_params":{"domain":"hr","biasAction":"block"},`+tc.body+`}`)
		k.flush(t)
		if w.Code != 200 || len(k.parts) != 1 {
			t.Fatalf("%s: %d %s", name, w.Code, w.Body)
		}
		p := k.parts[0]
		value, err := json.Marshal(p)
		if blocked := strings.Contains(w.Body.String(), liteLLMBlocked); err != nil || len(value) > 900_000 || p.Metadata[call.CutAt] != tc.cut || len(p.Messages)+len(p.Answers) != tc.n || blocked != strings.Contains(tc.body, emotional) {
			t.Errorf("%s: %d bytes, cut at %v, %d messages, %d answers, %s", name, len(value), p.Metadata[call.CutAt], len(p.Messages), len(p.Answers), w.Body)
		}
	}
}

// Bodies of LiteLLM's with photos may be larger than others, a few at once.
func TestLiteLLMTakesLargeBodies(t *testing.T) {
	d := deps(&log{})
	d.Limits.Body = 1 << 20
	k := inlined(t, &d)
	h := Handler(d)
	body := func(size int) string {
		photo := `"data:image/png;base64,` + strings.Repeat("A", size/2) + `"`
		return `{"input_type":"request","litellm_call_id":"c` + fmt.Sprint(size) + `","texts":["a"],"images":[` + photo + `],"structured_messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":` + photo + `}}]}]}`
	}
	var calls sync.WaitGroup
	for i := range 3 * maxLarge {
		calls.Go(func() {
			if w := send(h, "POST", liteLLMDoor, body(2<<20+i)); w.Code != 200 {
				t.Errorf("%d %.300s", w.Code, w.Body)
			}
		})
	}
	calls.Wait()
	if w := send(h, "POST", liteLLMDoor, body(3<<20)); w.Code != 413 || !strings.Contains(w.Body.String(), "3145728 bytes") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(h, "POST", liteLLMDoor, body(2<<20+100)); w.Code != 200 { // the places are free again
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(h, "POST", "/v1/guard", `{"response":"`+strings.Repeat("A", 2<<20)+`"}`); w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if k.flush(t); len(k.parts) != 3*maxLarge+1 {
		t.Errorf("%d parts", len(k.parts))
	}
}

func TestGuardPermissions(t *testing.T) {
	dev, sign := tokens(t)
	d := deps(&log{})
	inlined(t, &d)
	d.Auth = guard(auth.Config{Required: true, Dev: dev, StaticKey: "0123456789abcdef", DefaultTenant: "default"})
	h := Handler(d)
	said := `{"input_type":"response","litellm_call_id":"c","texts":["a"]}`
	for _, tc := range []struct {
		path, body, header, value string
		want                      int
	}{
		{"/v1/guard", `{"response":"a"}`, "Authorization", sign("acme", auth.Service), 200},
		{"/v1/guard", `{"response":"a"}`, "Authorization", sign("acme", auth.Reviewer), 403},
		{"/v1/guard", `{"response":"a","tenant_id":"b"}`, "Authorization", sign("acme", auth.Service), 403},
		{liteLLMDoor, said, "X-Api-Key", "0123456789abcdef", 200},
		{liteLLMDoor, said, "X-Api-Key", "none", 401},
		{liteLLMDoor, said, "X-Api-Key", "", 401},
		{liteLLMDoor, said, "Authorization", sign("acme", auth.Viewer), 403},
	} {
		if w := send(h, "POST", tc.path, tc.body, tc.header, tc.value); w.Code != tc.want {
			t.Errorf("%s %s: %d %s, want %d", tc.path, tc.value, w.Code, w.Body, tc.want)
		}
	}
}

// guardCaptures are requests as LiteLLM's proxy sent them.
func guardCaptures(tb testing.TB) (bodies []string) {
	tb.Helper()
	b := captured(tb, "litellm-proxy-1.106.2-generic_guardrail_api.json")
	var all []struct {
		Path string
		Body json.RawMessage
	}
	if err := json.Unmarshal([]byte(b), &all); err != nil {
		tb.Fatal(err)
	}
	for _, r := range all {
		if r.Path != liteLLMDoor {
			tb.Fatalf("LiteLLM asks at %s", r.Path)
		}
		bodies = append(bodies, string(r.Body))
	}
	return bodies
}

// with puts params in the place of those of a captured request.
func with(tb testing.TB, body, params string) string {
	tb.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		tb.Fatal(err)
	}
	fields["additional_provider_specific_params"] = json.RawMessage(params)
	out, _ := json.Marshal(fields)
	return string(out)
}

// The seven calls of LiteLLM's proxy, request and response, fold into seven interactions; the biased ones are stopped.
func TestLiteLLMCalls(t *testing.T) {
	d := deps(&log{})
	k := inlined(t, &d)
	h := Handler(d)
	var actions []string
	for _, body := range guardCaptures(t) {
		w := send(h, "POST", liteLLMDoor, with(t, body, `{"domain":"hr","threshold":0.15,"biasAction":"block"}`), "X-Evenhand-Tenant", "")
		var a liteLLMAnswer
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		actions = append(actions, a.Action)
		if (a.Action == liteLLMBlocked) != strings.HasPrefix(a.Reason, "Stopped by policy: discriminatory language (") || a.Texts != nil {
			t.Errorf("%+v", a)
		}
		for _, quoted := range []string{"emotional", "Immigrants", "slow", "Akzent"} {
			if strings.Contains(a.Reason, quoted) {
				t.Errorf("the reason quotes: %s", a.Reason)
			}
		}
	}
	// i01, i03, i04 and, in German, i06 are biased; the rules that ship read English.
	if got, want := strings.Join(actions, " "), "NONE BLOCKED NONE NONE NONE BLOCKED NONE BLOCKED NONE NONE NONE NONE NONE NONE"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	k.flush(t)
	calls := map[string]call.Part{}
	var order []string
	for _, p := range k.parts {
		if p.Done || p.Key != p.Group || p.Format != "litellm" || p.Domain != "hr" {
			t.Errorf("%+v", p)
		}
		if _, known := calls[p.Group]; !known {
			order = append(order, p.Group)
			calls[p.Group] = p
			continue
		}
		calls[p.Group] = call.Merge(calls[p.Group], p)
	}
	var got []string
	for _, group := range order {
		p := calls[group]
		value, err := p.Event(p.Claimed)
		if err != nil {
			t.Fatal(err)
		}
		_, in, faults := d.Decoder.Prepare(value, ingest.Sender{Now: now})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if in.Prompt == "" || in.Response == "" || in.ID != call.ID(p.Claimed, group, group) {
			t.Errorf("%+v", in)
		}
		if noted := strings.Contains(in.Metadata, `"guard":{"action":"block","reasons":["bias"],"rule_set":"`); noted != (in.Status == call.Blocked) {
			t.Errorf("metadata %s", in.Metadata)
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %s", in.Tenant, in.UserID, in.Model, in.TraceID[30:], in.Status))
	}
	want := `acme-hr u-17 gpt-4o-mini 36 blocked
acme-hr u-17 gpt-4o-mini 37 success
north-bank u-88 gpt-4o 38 blocked
care-plus u-5 gpt-4o 39 blocked
care-plus u-5 gpt-4o 3a success
uni-admit u-2 gpt-4o-mini 3b success
acme-hr u-19 gpt-4o-mini 3c success`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// A stream is judged every few chunks: each answer is that of its text, and one part holds the last of it.
func TestLiteLLMStream(t *testing.T) {
	guardtest.Current(t)
	synctest.Test(t, func(t *testing.T) {
		d := deps(&log{})
		k := inlined(t, &d)
		h := Handler(d)
		text := "I would skip Maria. " + emotional + " So pick one of the men, who do not leave."
		var blockedAt int
		for n := 5; n <= len(text); n += 5 {
			body, _ := json.Marshal(map[string]any{"input_type": "response", "litellm_call_id": "c-1", "texts": []string{text[:n]}, "additional_provider_specific_params": map[string]any{"domain": "hr", "biasAction": "block"}})
			for range 2 { // asked again, the same
				w := send(h, "POST", liteLLMDoor, string(body))
				if blocked := strings.Contains(w.Body.String(), liteLLMBlocked); blocked && blockedAt == 0 {
					blockedAt = n
				} else if blocked != (blockedAt > 0) {
					t.Fatalf("%d: %s", n, w.Body)
				}
			}
			if blockedAt > 0 {
				break
			}
		}
		k.flush(t)
		if blockedAt == 0 || blockedAt > len("I would skip Maria. "+emotional) {
			t.Errorf("blocked at %d", blockedAt)
		}
		whole := k.parts[0]
		for _, p := range k.parts[1:] {
			whole = call.Merge(whole, p)
		}
		var last string
		if err := json.Unmarshal(whole.Answers[0].Content, &last); err != nil || last != text[:blockedAt] || whole.Status != call.Blocked {
			t.Errorf("%q %+v", last, whole)
		}
	})
}

func TestLiteLLM(t *testing.T) {
	const toolCall = `"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"r\":\"` + emotional + `\"}"}}]`
	const secret = `"texts":["Write to jane.roe@example.com.","Not to joe@example.com but to jane.roe@example.com."]`
	for _, tc := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"masked", `{"input_type":"response","litellm_call_id":"c",` + secret + `,"additional_provider_specific_params":{"mask":true}}`, 200, `{"action":"GUARDRAIL_INTERVENED","texts":["Write to [EMAIL_1].","Not to [EMAIL_2] but to [EMAIL_1]."],"stream_holdback_chars":[19,34]}`},
		{"a prompt is masked, too", `{"input_type":"request","litellm_call_id":"c",` + secret + `,"additional_provider_specific_params":{"mask":true}}`, 200, `{"action":"GUARDRAIL_INTERVENED"`},
		{"masked by the question before", `{"input_type":"request","litellm_call_id":"c","texts":["What is your passport number?","A48291736","It was A48291736."],"additional_provider_specific_params":{"mask":true}}`, 200, `"texts":["What is your passport number?","[PASSPORT_1]","It was [PASSPORT_1]."]`},
		{"half a number is kept back", `{"input_type":"response","litellm_call_id":"c","texts":["` + strings.Repeat("She asked what the others made of it. ", 20) + `Her SSN is 536"],"additional_provider_specific_params":{"mask":true}}`, 200, `{"action":"NONE","stream_holdback_chars":[162]}`},
		{"a prompt is no stream", `{"input_type":"request","litellm_call_id":"c","texts":["a"],"additional_provider_specific_params":{"mask":true}}`, 200, `{"action":"NONE"}`},
		{"not masked", `{"input_type":"response","litellm_call_id":"c",` + secret + `}`, 200, `{"action":"NONE"}`},
		{"a prompt that is not checked", `{"input_type":"request","texts":["` + emotional + `"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block"}}`, 200, `{"action":"NONE"}`},
		{"a prompt that is", `{"input_type":"request","texts":["` + emotional + `"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block","check":"prompt"}}`, 200, `{"action":"BLOCKED"`},
		{"an answer that is not", `{"input_type":"response","texts":["` + emotional + `"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block","check":"prompt"}}`, 200, `{"action":"NONE"}`},
		{"a warning passes", `{"input_type":"response","texts":["` + emotional + `"],"additional_provider_specific_params":{"domain":"hr"}}`, 200, `{"action":"NONE"}`},
		{"nobody to ask", `{"input_type":"response","texts":["I will transfer $5,000 to account 7."],"additional_provider_specific_params":{"hitlGate":true}}`, 200, `{"action":"BLOCKED","blocked_reason":"Stopped by policy: a human's approval is needed (rule financial)`},
		{"no texts", `{"input_type":"response"}`, 200, `{"action":"NONE"}`},
		{"a call of a tool", `{"input_type":"response","texts":[],"tool_calls":[{"type":"function"}]}`, 200, `{"action":"NONE"}`},
		{"a biased call of a tool", `{"input_type":"response","texts":[],` + toolCall + `,"litellm_call_id":"c","additional_provider_specific_params":{"domain":"hr","biasAction":"block"}}`, 200, `{"action":"BLOCKED"`},
		{"and beside text", `{"input_type":"response","texts":["Let me check."],` + toolCall + `,"additional_provider_specific_params":{"domain":"hr","biasAction":"block"}}`, 200, `{"action":"BLOCKED"`},
		{"unknown fields are LiteLLM's affair", `{"input_type":"response","texts":["a"],"new":{"a":[1]}}`, 200, `{"action":"NONE"}`},
		{"unknown param", `{"input_type":"response","texts":["a"],"additional_provider_specific_params":{"bias_action":"block"}}`, 400, `"field":"additional_provider_specific_params.bias_action"`},
		{"unknown domain", `{"input_type":"response","texts":["a"],"additional_provider_specific_params":{"domain":"hospital"}}`, 400, `wants one of`},
		{"a bad rule", `{"input_type":"response","texts":["a"],"additional_provider_specific_params":{"hitlGate":true,"hitlGateRules":[{"id":"x","description":"d","category":"c","pattern":"x*"}]}}`, 400, `"field":"additional_provider_specific_params.hitlGateRules[0].pattern"`},
		{"bad params of ours", `{"input_type":"response","texts":["a"],"additional_provider_specific_params":{"mask":1}}`, 400, `"additional_provider_specific_params.mask"`},
		{"another type", `{"input_type":"during"}`, 400, `"input_type"`},
		{"texts of another kind", `{"input_type":"response","texts":"a"}`, 400, `"texts"`},
		{"no object", `[]`, 400, `wants an object`},
		{"huge", `{"input_type":"response","texts":["` + strings.Repeat("x ", 1<<18) + emotional + `"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block"}}`, 200, `{"action":"BLOCKED"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := deps(&log{})
			k := inlined(t, &d)
			w := send(Handler(d), "POST", liteLLMDoor, tc.body)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if k.flush(t); (w.Code == 200) != (len(k.parts) == 1) {
				t.Errorf("%d parts", len(k.parts))
			}
			asked := strings.Contains(tc.body, `"input_type":"request"`) && !strings.Contains(tc.want, "BLOCKED") // what passed reaches the model
			if len(k.parts) == 1 && k.parts[0].Asked != asked {
				t.Errorf("asked %v", k.parts[0].Asked)
			}
		})
	}
}

// dark looks for personal data and cannot.
type dark struct{}

func (dark) Info() detectors.Info { return detectors.Info{ID: "pii", Family: detectors.PII} }
func (dark) Detect(context.Context, *detectors.Input) ([]audit.Finding, error) {
	return nil, errors.New("it is dark")
}

// What is to be masked and could not be looked at goes on only where the guard fails open.
func TestLiteLLMMasksOrFails(t *testing.T) {
	const secret = "Write to jane.roe@example.com."
	gate := guardtest.Light(t).Analyzer().Detectors()
	and := func(d detectors.Detector) []detectors.Detector { return append(slices.Clone(gate), d) }
	rules := and(guardtest.Personal(t))
	for _, tc := range []struct {
		name     string
		ds       []detectors.Detector
		timeout  time.Duration
		failOpen bool
		side     string
		status   int
		want     string
	}{
		{"in time", rules, time.Minute, false, "response", 200, `"texts":["Write to [EMAIL_1]."]`},
		{"too late to decide", rules, time.Nanosecond, false, "response", 503, `unavailable`},
		{"too late to decide, open", rules, time.Nanosecond, true, "response", 200, `"texts":["Write to [EMAIL_1]."]`},
		{"too late, and not decided upon", rules, time.Nanosecond, false, "request", 200, `"texts":["Write to [EMAIL_1]."]`},
		{"not looked at", and(dark{}), time.Minute, false, "response", 503, `unavailable`},
		{"not looked at, open", and(dark{}), time.Minute, true, "response", 200, `{"action":"NONE"`},
		{"nothing looks", gate, time.Minute, true, "response", 400, `"field":"additional_provider_specific_params.mask"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := detectors.DefaultPolicy()
			p.DetectTimeout = tc.timeout
			a, err := detectors.NewAnalyzer(p, tc.ds...)
			if err != nil {
				t.Fatal(err)
			}
			d := deps(&log{})
			k := inlined(t, &d)
			d.Inline.Guard, d.Inline.FailOpen = inline.New(detectors.NewCurrent(a), inline.Config{FailOpen: tc.failOpen}), tc.failOpen
			w := send(Handler(d), "POST", liteLLMDoor, `{"input_type":"`+tc.side+`","litellm_call_id":"c","texts":["`+secret+`"],"additional_provider_specific_params":{"mask":true}}`)
			if w.Code != tc.status || !strings.Contains(strings.ToLower(w.Body.String()), strings.ToLower(tc.want)) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if k.flush(t); (w.Code != 400) != (len(k.parts) == 1) {
				t.Errorf("%d parts", len(k.parts))
			}
		})
	}
}

// What LiteLLM's door judges is the text that the record of the call has.
func TestLiteLLMJudgesTheRecord(t *testing.T) {
	for _, body := range []string{
		`{"texts":["a"]}`, `{"texts":["a","","b"]}`, `{"texts":[]}`, `{"texts":null,"tool_calls":null}`,
		`{"texts":["a"],"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"r\":\"x\\ud800\"}"}}]}`,
		`{"texts":[],"tool_calls":[{"function":{"name":"f","arguments":"{\"r\":\"x"}},7,"y"]}`,
	} {
		var q liteLLMRequest
		if err := json.Unmarshal([]byte(body), &q); err != nil {
			t.Fatal(err)
		}
		q.Type = "response"
		p := q.part("acme", now)
		value, err := p.Event("acme")
		if err != nil {
			t.Fatal(err)
		}
		_, in, faults := ingest.NewDecoder(ingest.Options{}).Prepare(value, ingest.Sender{Tenant: "acme", Now: now})
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		if judged := q.interaction(&p, ""); judged.Response != in.Response || judged.ID != in.ID {
			t.Errorf("%s: judged %q, recorded %q", body, judged.Response, in.Response)
		}
	}
}

func TestInlineDoorsAreAlike(t *testing.T) {
	d := deps(&log{})
	inlined(t, &d)
	h := Handler(d)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 20 {
				body := fmt.Sprintf(`{"response":"%s %d","domain":"hr"}`, emotional, i)
				if w := send(h, "POST", "/v1/guard", body); w.Code != 200 || !strings.Contains(w.Body.String(), `"warn"`) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
				body = fmt.Sprintf(`{"input_type":"response","litellm_call_id":"c%d","texts":["%s"],"additional_provider_specific_params":{"domain":"hr","biasAction":"block"}}`, i, emotional)
				if w := send(h, "POST", liteLLMDoor, body); !strings.Contains(w.Body.String(), liteLLMBlocked) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			}
		})
	}
	wg.Wait()
}

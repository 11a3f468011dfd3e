package door

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
)

// replayed stands in for package judge/mend: faults by the wish.
func replayed(r ReplayRequest) (any, error) {
	switch r.Model {
	case "unknown":
		return nil, ErrNoInteraction
	case "away":
		return nil, audit.E("test", audit.KindUnavailable, errors.New("a secret"))
	case "busy":
		return nil, audit.E("test", audit.KindOverloaded, errors.New("a secret"))
	case "cut":
		return nil, audit.E("test", audit.KindInvalid, errors.New("the texts are dropped"))
	}
	id := r.ID
	if r.Event != nil {
		id = r.Event.ID
	}
	return json.RawMessage(`{"id":"` + id.String() + `","run":"` + uuid7 + `","outcome":"passed","mended":true,"best":1,"stop":"passed","response":"b","input_tokens":1,"output_tokens":1,"cost_usd":0,"rounds":[` +
		`{"round":0,"id":"` + id.String() + `","outcome":"failed","score":0.4,"notes":[{"issue":"i","excerpt":"e"}],"response":"a","model":"m","kept":false},` +
		`{"round":1,"id":"` + uuid7 + `","outcome":"passed","score":1,"notes":[],"response":"b","model":"m","kept":true,"stop":"passed"}]}`), nil
}

func TestReplay(t *testing.T) {
	doc := openAPI(t)
	for _, tc := range []struct {
		name, body string
		status     int
		produced   int
		want       string
	}{
		{"stored", `{"id":"` + uuid7 + `","rounds":2}`, 200, 0, `"mended":true`},
		{"event", `{"event":{"id":"` + uuid7 + `","prompt":"p","response":"a"},"model":"m"}`, 200, 1, uuid7},
		{"a faulty event", `{"event":{"respose":"a"}}`, 400, 0, `"event.respose"`},
		{"both", `{"id":"` + uuid7 + `","event":{}}`, 400, 0, "either"},
		{"neither", `{}`, 400, 0, "either"},
		{"all at fault", `{"id":"x","rounds":0,"model":1,"modle":"m"}`, 400, 0, `"modle"`},
		{"unknown", `{"id":"` + uuid7 + `","model":"unknown"}`, 404, 0, "no such"},
		{"dropped", `{"id":"` + uuid7 + `","model":"cut"}`, 400, 0, "the texts are dropped"},
		{"away", `{"id":"` + uuid7 + `","model":"away"}`, 503, 0, ""},
		{"busy", `{"id":"` + uuid7 + `","model":"busy"}`, 429, 0, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &log{}
			w := send(Handler(deps(l)), "POST", "/v1/replay", tc.body, "Content-Type", "application/json")
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) || len(l.ms) != tc.produced || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("%d %s, %d produced", w.Code, w.Body, len(l.ms))
			}
			doc.check("post", "/v1/replay", strconv.Itoa(w.Code), w.Body.Bytes())
		})
	}
	doc.valid("/components/schemas/ReplayRequest", []byte(`{"event":{"response":"a"},"rounds":1,"model":"m"}`))
	down := deps(&log{err: audit.E("test", audit.KindUnavailable, errors.New("away"))})
	if w := send(Handler(down), "POST", "/v1/replay", `{"event":{"response":"a"}}`); w.Code != http.StatusServiceUnavailable {
		t.Errorf("an event that the log does not take: %d", w.Code)
	}
}

// Who may not read texts gets none of a stored interaction; the tenant is the credential's.
func TestReplayReachesOwnTextsOnly(t *testing.T) {
	d := deps(&log{})
	var got ReplayRequest
	d.Replay = func(_ context.Context, r ReplayRequest) (any, error) { got = r; return replayed(r) }
	d.Auth = admits{&auth.Principal{Tenant: "acme", Verified: true, May: []auth.Permission{auth.Guard}}}
	if w := send(Handler(d), "POST", "/v1/replay", `{"id":"`+uuid7+`"}`); w.Code != http.StatusForbidden {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := send(Handler(d), "POST", "/v1/replay", `{"event":{"response":"a"}}`); w.Code != http.StatusOK || got.Tenant != "acme" || got.Event.Tenant != "acme" {
		t.Errorf("%d %s %+v", w.Code, w.Body, got)
	}
	if w := send(Handler(d), "POST", "/v1/replay", `{"event":{"response":"a","tenant_id":"beta"}}`); w.Code != http.StatusForbidden {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	d.Auth = admits{&auth.Principal{Tenant: "acme", Verified: true, May: []auth.Permission{auth.Guard, auth.ReadTexts}}}
	if w := send(Handler(d), "POST", "/v1/replay", `{"id":"`+uuid7+`"}`); w.Code != http.StatusOK || got.Tenant != "acme" || got.ID.String() != uuid7 {
		t.Errorf("%d %s %+v", w.Code, w.Body, got)
	}
}

type admits struct{ p *auth.Principal }

func (a admits) Admit(*http.Request, auth.Permission) (*auth.Principal, error) { return a.p, nil }

func FuzzReplayRequest(f *testing.F) {
	f.Add([]byte(`{"id":"` + uuid7 + `","rounds":2}`))
	f.Add([]byte(`{"event":{"response":"a"},"model":"m"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, event, faults := readReplay(body)
		if len(faults) == 0 && (r.ID.IsZero() == (event == nil) || r.Rounds > 255) {
			t.Errorf("%+v", r)
		}
		for _, x := range faults {
			if x.Code == "" || x.Code == ingest.TenantMissing {
				t.Errorf("%+v", x)
			}
		}
	})
}

// A model's answer comes out of the caller's budget, and those who wait for one do not hold the places of others.
func TestEvaluateIsTheTenants(t *testing.T) {
	d := deps(&log{})
	d.Limits.InFlight = 1
	var got EvaluateRequest
	var h http.Handler
	d.Evaluate = func(_ context.Context, r EvaluateRequest) (any, error) {
		if got = r; r.Mode == "llm" {
			if w := send(h, "POST", "/v1/evaluate", `{"output":"x","mode":"deterministic"}`, "X-Evenhand-Tenant", "acme"); w.Code != http.StatusOK {
				t.Errorf("another one: %d", w.Code)
			}
		}
		return map[string]any{"score": 1, "pass": true, "reasoning": "", "terms": []any{}}, nil
	}
	h = Handler(d)
	if w := send(h, "POST", "/v1/evaluate", `{"output":"x","mode":"llm"}`, "X-Evenhand-Tenant", "acme"); w.Code != http.StatusOK || got.Tenant != "acme" {
		t.Errorf("%d %s %+v", w.Code, w.Body, got)
	}
}

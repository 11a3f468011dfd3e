package door

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
)

// tokens signs for a data folder of the test's own.
func tokens(t *testing.T) (*auth.DevKey, func(tenant string, roles ...auth.Role) string) {
	t.Helper()
	k, err := auth.MakeDevKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return k, func(tenant string, roles ...auth.Role) string {
		s, err := k.Sign(tenant, "ann", roles, time.Hour, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + s
	}
}

// The rule: credential, then header, then the payload while nobody is asked, then tenant.default; what
// differs is refused, and nothing is taken.
func TestTenants(t *testing.T) {
	const static = "0123456789abcdef"
	dev, sign := tokens(t)
	asked := func(tenant string) Guard {
		return guard(auth.Config{Required: true, StaticKey: static, Dev: dev, DefaultTenant: tenant})
	}
	acme, key := sign("acme", auth.Service), "Bearer "+static
	const payload = `{"tenant_id":"acme","response":"a"}`
	for _, tc := range []struct {
		name          string
		guard         Guard
		body          string
		bearer, other string // Authorization, X-Evenhand-Tenant
		status        int
		want          string // tenant that was taken, or what the answer says
	}{
		{"nobody is asked: header", opened("default"), `{}`, "", "h", 202, "h"},
		{"nobody is asked: payload", opened("default"), payload, "", "", 202, "acme"},
		{"nobody is asked: default", opened("default"), `{}`, "", "", 202, "default"},
		{"nobody is asked: none", opened(""), `{}`, "", "", 400, "tenant_missing"},
		{"nobody is asked: header and payload differ", opened("default"), payload, "", "h", 403, "tenant_mismatch"},
		{"nobody is asked, a token is shown", opened("default"), `{}`, acme, "", 401, "dev_tokens_off"},
		{"token", asked("default"), `{}`, acme, "", 202, "acme"},
		{"token, its own payload", asked("default"), payload, acme, "", 202, "acme"},
		{"token, its own header", asked("default"), payload, acme, "acme", 202, "acme"},
		{"token, another payload", asked("default"), `{"tenant_id":"b"}`, acme, "", 403, "tenant_mismatch"},
		{"token, one of two is another's", asked("default"), payload + "\n" + `{"tenant_id":"b"}`, acme, "", 403, "none was taken"},
		{"token, another header", asked("default"), `{}`, acme, "b", 403, "tenant_mismatch"},
		{"token, another header and payload", asked("default"), `{"tenant_id":"b"}`, acme, "b", 403, "tenant_mismatch"},
		{"token of a viewer", asked("default"), `{}`, sign("acme", auth.Viewer, auth.Reviewer), "", 403, "no_permission"},
		{"static key: header", asked("default"), `{}`, key, "h", 202, "h"},
		{"static key: header and payload", asked("default"), payload, key, "acme", 202, "acme"},
		{"static key: default", asked("default"), `{}`, key, "", 202, "default"},
		{"static key: the payload does not choose", asked("default"), payload, key, "", 403, "tenant_mismatch"},
		{"static key: none", asked(""), payload, key, "", 400, "X-Evenhand-Tenant"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := &log{}
			d := deps(l)
			d.Auth = tc.guard
			if tc.want == "tenant_missing" {
				d.Decoder = ingest.NewDecoder(ingest.Options{})
			}
			var headers []string
			if tc.bearer != "" {
				headers = append(headers, "Authorization", tc.bearer)
			}
			if tc.other != "" {
				headers = append(headers, "X-Evenhand-Tenant", tc.other)
			}
			w := send(Handler(d), "POST", "/v1/interactions", tc.body, headers...)
			if w.Code != tc.status {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if tc.status != http.StatusAccepted {
				if len(l.ms) != 0 || !strings.Contains(w.Body.String(), tc.want) || tc.status == 403 && !strings.Contains(w.Body.String(), `"FORBIDDEN"`) {
					t.Errorf("%d produced; %s", len(l.ms), w.Body)
				}
				return
			}
			in, rej := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"}).Decode(record(l.ms[0]), audit.Origin{BrokerTime: now})
			if rej != nil || in.Tenant != tc.want {
				t.Errorf("%+v %+v", in, rej)
			}
		})
	}
}

func TestPermissionsOfDoors(t *testing.T) {
	dev, sign := tokens(t)
	d := deps(&log{})
	d.Auth = guard(auth.Config{Required: true, Dev: dev})
	h := Handler(d)
	for _, tc := range []struct {
		path, body string
		role       auth.Role
		want       int
	}{
		{"/v1/interactions", `{}`, auth.Service, 202}, {"/v1/interactions", `{}`, auth.Admin, 202}, {"/v1/interactions", `{}`, auth.Reviewer, 403},
		{"/analyze-bias", `{"llm_response":"x"}`, auth.Service, 200}, {"/analyze-bias", `{"llm_response":"x"}`, auth.Viewer, 403},
		{"/analyze-bias", `{"llm_response":"x","tenant_id":"b"}`, auth.Service, 403},
		{"/v1/evaluate", `{"output":"x"}`, auth.Service, 200}, {"/v1/evaluate", `{"output":"x"}`, auth.Reviewer, 403},
		{"/openapi.json", ``, auth.Viewer, 405},
	} {
		if w := send(h, "POST", tc.path, tc.body, "Authorization", sign("acme", tc.role)); w.Code != tc.want {
			t.Errorf("%s as %s: %d %s, want %d", tc.path, tc.role, w.Code, w.Body, tc.want)
		}
	}
	d.Auth = nil
	if w := send(Handler(d), "POST", "/v1/interactions", `{}`); w.Code < 400 {
		t.Errorf("without a guard: %d", w.Code)
	}
}

func TestRateOfATenant(t *testing.T) {
	d := deps(&log{})
	d.Auth = guard(auth.Config{Rate: 0.001, Burst: 1})
	h := Handler(d)
	send(h, "POST", "/v1/interactions", `{}`, "X-Evenhand-Tenant", "a")
	w := send(h, "POST", "/v1/interactions", `{}`, "X-Evenhand-Tenant", "a")
	if w.Code != 429 || w.Header().Get("Retry-After") == "" || w.Header().Get("Retry-After") == "1" || !strings.Contains(w.Body.String(), "rate_limited") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := send(h, "POST", "/v1/interactions", `{}`, "X-Evenhand-Tenant", "b"); w.Code != 202 {
		t.Errorf("another tenant: %d", w.Code)
	}
}

package llm

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/secret"
)

// The list of a server's models tells whether its key is good, without a text.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		kind, body string
		want       string
	}{
		"models":        {200, "application/json", `{"object":"list","data":[{"id":"m"},{"id":"n"}]}`, "[m n] <nil>"},
		"no list":       {404, "application/json", `{"error":{"message":"no"}}`, "[] <nil>"},
		"another form":  {200, "application/json", `["m"]`, "[] <nil>"},
		"a bad key":     {401, "application/json", `{"error":{"code":"invalid_api_key","message":"sk-canary"}}`, "[] llm: HTTP 401 (invalid_api_key)"},
		"a page":        {200, "text/html", `<html>canary</html>`, "[] llm: an answer of an unexpected form; is judge.base_url an OpenAI-compatible server?"},
		"a dead server": {502, "text/html", `<html>canary</html>`, "[] llm: HTTP 502"},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodGet || r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer key-1" {
					t.Errorf("%s %s %v", r.Method, r.URL.Path, r.Header)
				}
				w.Header().Set("Content-Type", tc.kind)
				w.WriteHeader(tc.status)
				fmt.Fprint(w, tc.body)
			}))
			defer s.Close()
			c := DefaultConfig()
			c.BaseURL, c.APIKey = s.URL+"/v1/", secret.Text("key-1")
			m, err := New(c, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			models, err := m.Check(t.Context())
			if got := fmt.Sprint(models, " ", err); got != tc.want || strings.Contains(got, "canary") {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

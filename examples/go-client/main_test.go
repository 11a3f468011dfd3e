package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The program prints what passes and what is stopped, and both are on record.
func TestRun(t *testing.T) {
	text, events := "", make(chan string, 10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/interactions" {
			b, _ := io.ReadAll(r.Body)
			events <- string(b)
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","model":"m","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"`+text+`"}}]}`)
	}))
	defer s.Close()
	t.Setenv("OPENAI_BASE_URL", s.URL+"/v1")
	t.Setenv("OPENAI_API_KEY", "sk-test")
	for said, want := range map[string]string{"Ask the team.": "Ask the team.\nallow, bias 0;", "Women are too emotional to lead.": "stopped: sex (MEDIUM, 0.6)"} {
		text = said
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-evenhand", s.URL, "-spool", t.TempDir(), "Who", "should", "lead?"}, &out); err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("%v %q", err, out.String())
		}
		if e := <-events; !strings.Contains(e, said) || !strings.Contains(e, `"application":"go-client"`) || !strings.Contains(e, "Who should lead?") {
			t.Errorf("event %s", e)
		}
	}
}

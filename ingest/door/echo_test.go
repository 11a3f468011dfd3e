package door

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks/evaluations"
)

// What Evenhand tells of a call is no call: sent to its own door, by mistake or through a Collector that sends
// everything everywhere, it is taken and passed over.
func TestOwnEventsAreNoInteractions(t *testing.T) {
	j := &joiner{}
	d := deps(&log{})
	d.Join = j
	codes := make(chan int, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		Handler(d).ServeHTTP(rec, r)
		codes <- rec.Code
		w.WriteHeader(rec.Code)
	}))
	defer srv.Close()
	sent := 0
	c := evaluations.DefaultConfig()
	c.Endpoint = srv.URL
	s, err := evaluations.New(t.Context(), c, evaluations.Options{Count: func(outcome string, n int) {
		if outcome == evaluations.Sent {
			sent += n
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.Record(&audit.Record{
		Interaction: &audit.Interaction{ID: audit.DeriveID("a"), Tenant: "t", TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", SpanID: "00f067aa0ba902b7", Metadata: `{"gen_ai.response.id":"r"}`},
		Verdict:     &audit.Verdict{Analyzer: audit.HotAnalyzer, Status: audit.Done, Flagged: true, Detected: true, BiasTypes: []string{"charter.sex"}, Time: time.Now()},
	})
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code := <-codes; code != http.StatusOK || sent != 1 || len(j.parts) != 0 {
		t.Errorf("%d, %d sent, %d parts of calls", code, sent, len(j.parts))
	}
}

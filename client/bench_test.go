package client_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/client"
)

// texts of 2 KB: ordinary prose, and the same with a finding.
var (
	prose = strings.Repeat("The committee met on Tuesday, read the three reports that had been asked for, and put the budget off until May. ", 18)
	found = prose[:1000] + ". " + biased + " " + prose[1000:]
)

// answering is a next RoundTripper that costs next to nothing.
type answering struct {
	kind string
	body []byte
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	_ = r.Body.Close()
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {a.kind}}, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

// BenchmarkTransport shows what the transport adds to a call that is judged in the process, in microseconds: at the
// middle and at the 99th of 100. The call beneath answers at once with 2 KB of text; events go to an emitter.
func BenchmarkTransport(b *testing.B) {
	o := client.DefaultOptions()
	o.Domain, o.BiasAction, o.SafetyFilter, o.HITLGate = audit.HR, audit.Block, true, true
	for _, bc := range []struct {
		name string
		next answering
	}{
		{"clean", answering{"application/json", []byte(completion(prose))}},
		{"found", answering{"application/json", []byte(completion(found))}},
		{"stream", answering{"text/event-stream", []byte(chunks(prose))}},
	} {
		b.Run(bc.name, func(b *testing.B) {
			e, err := client.NewEmitter(&memory{fail: func([]client.Encoded) error { return nil }, forget: true}, client.DefaultEmitterOptions())
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close(b.Context()) //nolint:errcheck // a benchmark
			o.Emitter = e
			t, err := client.NewTransport(bc.next, decider(b), o)
			if err != nil {
				b.Fatal(err)
			}
			took := make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest(http.MethodPost, "http://model/v1/chat/completions", strings.NewReader(chatAsk))
				began := time.Now()
				if res, err := t.RoundTrip(req); err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					_ = res.Body.Close()
				}
				took = append(took, time.Since(began))
			}
			report(b, took)
		})
	}
}

// BenchmarkDecide shows one decision in the process about 2 KB, the same way.
func BenchmarkDecide(b *testing.B) {
	o := client.DefaultOptions()
	o.Domain, o.BiasAction, o.SafetyFilter, o.HITLGate = audit.HR, audit.Block, true, true
	for name, text := range map[string]string{"clean": prose, "found": found} {
		b.Run(name, func(b *testing.B) {
			e := &client.Event{ID: "a", Domain: "hr", Response: text}
			took := make([]time.Duration, 0, b.N)
			b.ReportAllocs()
			for b.Loop() {
				began := time.Now()
				if stop, err := client.Decide(b.Context(), decider(b), e, &o); err != nil || (stop != nil) != (name == "found") {
					b.Fatal(stop, err)
				}
				took = append(took, time.Since(began))
			}
			report(b, took)
		})
	}
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1000, "p99-µs")
}

package gateway

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkAdded calls a provider on loopback in turns directly and through the gateway, in one run, and
// reports what the gateway adds at the median and at the 99th percentile: to a whole answer of 1,000
// characters, and to a stream of it until its end; masked, too.
func BenchmarkAdded(b *testing.B) {
	text := strings.Repeat("The capital of France is Paris, and it lies on the Seine. ", 18)
	for _, tc := range []struct {
		name, more string
		serve      http.HandlerFunc
		change     func(*Config, *Deps)
	}{
		{"whole", "", says(text), nil},
		{"stream_hold", streamed, streams("\n", pieces(text)...), func(c *Config, _ *Deps) { c.Stream = StreamHold }},
		{"stream_window", streamed, streams("\n", pieces(text)...), func(c *Config, _ *Deps) { c.Stream = StreamWindow }},
		{"stream_pass", streamed, streams("\n", pieces(text)...), nil},
		{"whole_masked", "", says(text), masks(MaskBoth, true)},
		{"stream_masked", streamed, streams("\n", pieces(text)...), masks(MaskBoth, true)},
		{"stream_unmasked", streamed, streams("\n", pieces(text)...), masks(MaskRequest, true)},
	} {
		b.Run(tc.name, func(b *testing.B) {
			p := newProvider(b, tc.serve)
			s := start(b, p.URL, func(c *Config, d *Deps) {
				c.KeepAlive = time.Minute
				if tc.change != nil {
					tc.change(c, d)
				}
			})
			body := []byte(prompt("What is the capital of France, and where does it lie? Tell lena@hafen.example.", tc.more))
			call := func(url string) float64 {
				began := time.Now()
				res, err := http.Post(url+PathChat, "application/json", bytes.NewReader(body)) //nolint:noctx // a benchmark
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
				return float64(time.Since(began).Microseconds())
			}
			for range 200 {
				call(p.URL)
				call(s.http.URL)
			}
			var direct, through []float64
			for b.Loop() {
				direct, through = append(direct, call(p.URL)), append(through, call(s.http.URL))
			}
			at := func(xs []float64, q float64) float64 { return xs[int(q*float64(len(xs)-1))] }
			slices.Sort(direct)
			slices.Sort(through)
			b.ReportMetric(at(direct, .5), "direct_p50_µs")
			b.ReportMetric(at(through, .5)-at(direct, .5), "added_p50_µs")
			b.ReportMetric(at(direct, .99), "direct_p99_µs")
			b.ReportMetric(at(through, .99)-at(direct, .99), "added_p99_µs")
		})
	}
}

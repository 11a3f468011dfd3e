package otlp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/otlp"
)

// BenchmarkTraces reports the time of one span, parts included.
func BenchmarkTraces(b *testing.B) {
	for _, name := range []string{"otel-openai-v2-2.4b0-span.traces.bin", "litellm-sdk-1.106.2-otel.traces.bin", "vercel-ai-6.0.326-generateText.traces.bin", "openinference-openai-0.1.66.traces.bin", "decoded/otel-openai-v2-2.4b0-span.traces.json"} {
		b.Run(strings.TrimPrefix(name, "decoded/"), func(b *testing.B) {
			body, err := os.ReadFile(detectortest.Shared(b, "data", "events", name))
			if err != nil {
				b.Fatal(err)
			}
			f := otlp.Traces(otlp.Names{})
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := f.Parts(call.Payload{Body: body}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/14, "µs/span") // 14 spans each
		})
	}
}

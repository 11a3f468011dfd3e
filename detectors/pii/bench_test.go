package pii_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/evenhand/evenhand/detectors/detectortest"
)

// BenchmarkAnalyze is the cost of personal data alone for a response of 2 KB, the analyzer's own work included.
func BenchmarkAnalyze(b *testing.B) {
	prose := strings.Repeat("Thank you for writing to us. The meeting is on Tuesday at ten, and we would like to hear how the new plan works for your team. ", 20)[:2048]
	figures := strings.Repeat("In 2024 sales rose from 12,400 to 13,950 units (12.5 %), see page 14 and order 4711. ", 30)[:2048]
	found := prose[:1900] + " Write to jane.doe@example.org or call +44 20 7946 0958; card 4111 1111 1111 1111. "
	for _, k := range []struct{ name, text string }{{"prose", prose}, {"figures", figures}, {"found", found}, {"numbers", strings.Repeat("4711815162 ", 190)[:2048]}, {"table", "id,tel\n" + strings.Repeat("7,4711815162\n", 160)[:2030]}} {
		b.Run(k.name, func(b *testing.B) {
			a := analyzer(b)
			in := detectortest.Interaction("", k.text)
			b.SetBytes(int64(len(k.text)))
			b.ReportAllocs()
			a.Analyze(b.Context(), in)
			begin := cpuTime()
			for b.Loop() {
				a.Analyze(b.Context(), in)
			}
			b.ReportMetric(float64((cpuTime()-begin).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is the processor time of the process: on a busy machine the clock says little.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package arbiter

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// BenchmarkFold gives the cost of a record and what a decided key takes in memory.
func BenchmarkFold(b *testing.B) {
	f := newFold(rules(b), nil)
	f.log = logs[0]
	at := time.Now().UTC()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	i := int64(0)
	for ; b.Loop(); i++ {
		value, _ := encode(wire{Log: logs[0].String(), Proposal: audit.DeriveID(fmt.Sprint(i)).String(), Seq: 1, By: "host/1", Value: json.RawMessage(`{"state":"approved"}`)})
		r := sources.Record{Offset: i, Time: at, Key: fmt.Append(nil, "once/", i), Value: value}
		o, err := f.judge(&r)
		if err != nil || !o.won {
			b.Fatal(err, o.err)
		}
		f.commit(&o, i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(i), "B/key")
	runtime.KeepAlive(f)
}

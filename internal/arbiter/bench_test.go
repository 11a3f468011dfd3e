package arbiter_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// One proposer, one key after the other: what a person waits for.
func BenchmarkDecide(b *testing.B) {
	b.Run("embedded", func(b *testing.B) { decideOne(b, brokertest.Start(b)) })
	b.Run("kafka", func(b *testing.B) {
		conn := brokertest.StartKafka(b).Conn
		create(b, conn, kafkaconn.Decisions)
		decideOne(b, conn)
	})
}

func decideOne(b *testing.B, conn kafkaconn.Config) {
	a := open(b, conn, arbiter.Options{})
	defer shut(b, a)
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		began := time.Now()
		if _, err := a.Decide(b.Context(), arbiter.Key{Kind: "once", ID: fmt.Sprint(i)}, json.RawMessage(`{"state":"approved"}`)); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}

// 64 proposers of one process.
func BenchmarkDecideInParallel(b *testing.B) {
	a := open(b, brokertest.Start(b), arbiter.Options{})
	defer shut(b, a)
	var n atomic.Int64
	b.SetParallelism(64 / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := a.Decide(b.Context(), arbiter.Key{Kind: "once", ID: fmt.Sprint(n.Add(1))}, json.RawMessage(`{"state":"approved"}`)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

// A value that is not in the cache is read from the log.
func BenchmarkReadFromTheLog(b *testing.B) {
	conn := brokertest.Start(b)
	a := open(b, conn, arbiter.Options{})
	defer shut(b, a)
	decideSome(b, a, 500)
	ctx := b.Context()
	for i := 0; b.Loop(); i++ {
		a.Forget()
		if _, _, err := a.Winner(ctx, arbiter.Key{Kind: "once", ID: fmt.Sprint(i % 500)}); err != nil {
			b.Fatal(err)
		}
	}
}

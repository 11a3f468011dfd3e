package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// atMost is what the judge's selection may cost the pipeline, as a ratio of its CPU an event.
const atMost = 1.10

// judgeBeside measures the pipeline with the judge's selection off and on, by turns. Requests are published and answered by
// nobody: the model is not on the hot path, and its server is never asked.
func judgeBeside(ctx context.Context, o options) error {
	const off, on = "judge.enabled=false", "judge.base_url=http://127.0.0.1:9/v1"
	if o.rounds < 1 {
		return errors.New("-rounds: is below 1")
	}
	var ratios, sums []float64
	for round := range o.rounds {
		arms := []string{off, on}
		if round%2 == 1 {
			slices.Reverse(arms)
		}
		run, all := map[string]float64{}, map[string]float64{}
		for _, arm := range arms {
			part := o
			part.dir, part.set = filepath.Join(o.dir, fmt.Sprintf("round-%d-%t", round, arm == on)), o.set+","+arm
			if err := os.MkdirAll(part.dir, 0o700); err != nil {
				return err
			}
			fmt.Printf("round %d of %d, %s\n", round+1, o.rounds, arm)
			each, err := apart(ctx, part, func(brokers string) error { return asked(ctx, brokers, o, arm == on) })
			if err != nil {
				return err
			}
			run[arm] = each["run"]
			for _, us := range each {
				all[arm] += us
			}
			if err := os.RemoveAll(part.dir); err != nil {
				return err
			}
		}
		ratios, sums = append(ratios, run[on]/run[off]), append(sums, all[on]/all[off])
	}
	slices.Sort(ratios)
	slices.Sort(sums)
	says := "within"
	if upper(ratios) > atMost {
		says = "ABOVE"
	}
	fmt.Printf("the pipeline with the judge's selection: %.3f × the CPU without (median of %d rounds, %.3f to %.3f; upper 95 %% bound %.3f), %s the limit of %.2f; broker and engine included %.3f × (%.3f)\n",
		median(ratios), o.rounds, ratios[0], ratios[len(ratios)-1], upper(ratios), says, atMost, median(sums), upper(sums))
	return nil
}

// upper is the one-sided 95 % upper bound of the median, by the sign test: the order statistic that no more than 5 % of
// samples leave below the median. Below 5 values there is none: +Inf. Hollander, Wolfe, Chicken (2014), §3.6.
func upper(sorted []float64) float64 {
	n := len(sorted)
	tail, choose := 0.0, 1.0 // of Bin(n, 1/2), from the top
	for k := n; k > 0; k-- {
		if tail += choose * math.Exp2(-float64(n)); tail > 0.05 {
			if k == n {
				break
			}
			return sorted[k]
		}
		choose *= float64(k) / float64(n-k+1)
	}
	return math.Inf(1)
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// asked prints how many requests are on the judge's topic, and fails where there should be others.
func asked(ctx context.Context, brokers string, o options, want bool) error {
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{brokers}
	cl, release, err := conn.Client()
	if err != nil {
		return err
	}
	defer release()
	ends := make([]kafka.OffsetRequest, o.parts)
	for p := range ends {
		ends[p] = kafka.LastOffsetOf(p)
	}
	res, err := cl.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{kafkaconn.Judge: ends}})
	if err != nil {
		return err
	}
	var n int64
	for _, p := range res.Topics[kafkaconn.Judge] {
		if p.Error != nil {
			return p.Error
		}
		n += p.LastOffset
	}
	fmt.Printf("  the judge is asked about %d of %d (%.1f %%)\n", n, o.n, 100*float64(n)/float64(o.n))
	if (n > 0) != want {
		return errors.New("the judge's selection is not what the round is about")
	}
	return nil
}

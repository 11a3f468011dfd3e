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
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// atMost is what the judge's selection may cost the pipeline, as a ratio of its CPU an event.
const atMost = 1.10

// judgeBeside measures the pipeline with the judge's selection off and on, both at once, each on a broker and an engine
// of its own: what else the machine does slows both. Requests are published and answered by nobody: the model is not on
// the hot path, and its server is never asked.
func judgeBeside(ctx context.Context, o options) error {
	if o.rounds < 1 {
		return errors.New("-rounds: is below 1")
	}
	var ratios, sums []float64
	for round := range o.rounds {
		var run, all [2]float64
		arms, ctx := errgroup.WithContext(ctx)
		for i, set := range []string{"judge.enabled=false", "judge.base_url=http://127.0.0.1:9/v1"} {
			part := o
			part.dir, part.set, part.quiet = filepath.Join(o.dir, fmt.Sprintf("round-%d-%d", round, i)), o.set+","+set, true
			arms.Go(func() error {
				if err := os.MkdirAll(part.dir, 0o700); err != nil {
					return err
				}
				each, err := apart(ctx, part, func(brokers string) error { return asked(ctx, brokers, o, i == 1) })
				if err != nil {
					return fmt.Errorf("%s: %w", set, err)
				}
				run[i] = each["run"]
				for _, us := range each {
					all[i] += us
				}
				return os.RemoveAll(part.dir)
			})
		}
		if err := arms.Wait(); err != nil {
			return err
		}
		fmt.Printf("round %d of %d: run %.1f µs CPU an event without, %.1f with (%.3f ×); broker and engine included %.1f and %.1f\n",
			round+1, o.rounds, run[0], run[1], run[1]/run[0], all[0], all[1])
		ratios, sums = append(ratios, run[1]/run[0]), append(sums, all[1]/all[0])
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
	if (n > 0) != want {
		return fmt.Errorf("the judge is asked about %d of %d: that is not what the round is about", n, o.n)
	}
	return nil
}

// Package sim measures alarm policies on made-up traffic: how often they cry wolf where nothing
// changes, and how long they take to find cells whose rate rises. It runs the evaluation that production
// runs, over hourly counts of a fixed seed.
//
// The traffic is that of research: 1,920 cells (24 tenants, 5 domains, 16 kinds) at 0.5 %, about 20
// interactions an hour in each, evaluated hourly. First 30 days without any change; then, on other
// data, 20 cells that rise threefold, and fivefold, at one moment.
package sim

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/alarm"
	"github.com/evenhand/evenhand/audit"
)

// Config is what is simulated.
type Config struct {
	Seeds     int // are averaged
	Tenants   int // times 5 domains times Kinds are the cells
	Kinds     int
	Rate      float64 // usual rate of every cell
	PerHour   float64 // analysed interactions of a domain
	Past      int     // days before the first evaluation
	Quiet     int     // days without change
	After     int     // days after a rise
	Rising    int     // cells that rise
	Spread    float64 // of the logarithm of the cells' usual rates around Rate
	Naive     bool    // ask the naive rules too
	FirstSeed uint64
}

// DefaultConfig is the simulation of the documentation.
func DefaultConfig() Config {
	return Config{Seeds: 3, Tenants: 24, Kinds: 16, Rate: 0.005, PerHour: 20, Past: 36, Quiet: 30, After: 14, Rising: 20, Naive: true, FirstSeed: 1}
}

// Row is what one rule did, over all seeds.
type Row struct {
	Rule        string  `json:"rule"`
	FalsePerDay float64 `json:"false_per_day"`
	Rises       []Rise  `json:"rises"`
}

// Rise is how a rule found cells that rose.
type Rise struct {
	Factor float64 `json:"factor"`
	Hours  int     `json:"median_hours"` // of all cells, those that were not found count as longest; -1: more than half were not found
	Found  int     `json:"found"`
	Of     int     `json:"of"`
	Others int     `json:"false"` // alarms meanwhile on cells that did not rise
}

// Named are policies with a name for the table.
type Named struct {
	Name     string
	Policies *alarm.Policies
}

// Cells is how many cells the traffic has.
func (c Config) Cells() int { return c.Tenants * len(audit.Domains) * c.Kinds }

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Factors are the rises that are simulated.
var Factors = []float64{3, 5}

// Run simulates all policies on the same data, and the naive rules with the first. Seeds run side by
// side; the outcome does not depend on it.
func Run(ctx context.Context, c Config, list []Named, progress func(string)) ([]Row, error) {
	seeds := make([][]tally, c.Seeds)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	var talks sync.Mutex
	for i := range seeds {
		g.Go(func() error {
			seeds[i] = c.seed(ctx, c.FirstSeed+uint64(i), list, func(s string) {
				talks.Lock()
				defer talks.Unlock()
				progress(s)
			})
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	rows := make([]Row, len(list)+len(c.naive(0)))
	for i := range rows {
		if i < len(list) {
			rows[i].Rule = list[i].Name
		} else {
			rows[i].Rule = alarm.NaiveRules[i-len(list)].Name
		}
		falses := 0
		for _, s := range seeds {
			falses += s[i].falses
		}
		rows[i].FalsePerDay = float64(falses) / float64(c.Quiet*c.Seeds)
		for f, factor := range Factors {
			r := Rise{Factor: factor}
			var delays []int
			for _, s := range seeds {
				x := s[i].rises[f]
				r.Found, r.Of, r.Others = r.Found+x.Found, r.Of+x.Of, r.Others+x.Others
				delays = append(delays, s[i].delays[f]...)
			}
			if r.Hours, _ = alarm.Median(delays); r.Hours == notFound {
				r.Hours = -1
			}
			rows[i].Rises = append(rows[i].Rises, r)
		}
	}
	return rows, nil
}

// tally is what one rule did with one seed.
type tally struct {
	falses int
	rises  []Rise
	delays [][]int
}

// seed simulates one seed.
func (c Config) seed(ctx context.Context, seed uint64, list []Named, progress func(string)) []tally {
	rows := make([]tally, len(list)+len(c.naive(0)))
	for i := range rows {
		rows[i].rises, rows[i].delays = make([]Rise, len(Factors)), make([][]int, len(Factors))
	}
	stop := func() bool { return ctx.Err() != nil }
	at := start.AddDate(0, 0, c.Past)
	quiet := c.history(seed, c.Quiet, 1, nil)
	for i, p := range list {
		r := alarm.Replay(quiet, p.Policies, at, at.AddDate(0, 0, c.Quiet), c.Naive && i == 0, stop)
		rows[i].falses = len(r.Episodes)
		for n := range c.naive(i) {
			rows[len(list)+n].falses = len(r.Naive[n])
		}
	}
	progress(fmt.Sprintf("seed %d: %d days without change", seed, c.Quiet))
	rising := c.rising(seed)
	for f, factor := range Factors {
		h := c.history(seed+1000*uint64(f+1), c.After, factor, rising)
		for i, p := range list {
			r := alarm.Replay(h, p.Policies, at, at.AddDate(0, 0, c.After), c.Naive && i == 0, stop)
			var alarms []alarm.Alarm
			for _, e := range r.Episodes {
				alarms = append(alarms, alarm.Alarm{Cell: e.Cell, At: e.Opened})
			}
			rows[i].delays[f] = rows[i].rises[f].take(alarms, rising, at)
			for n := range c.naive(i) {
				x := &rows[len(list)+n]
				x.delays[f] = x.rises[f].take(r.Naive[n], rising, at)
			}
		}
		progress(fmt.Sprintf("seed %d: %d cells rise x%g", seed, c.Rising, factor))
	}
	return rows
}

// naive are the naive rules to take from the replay of policies number i.
func (c Config) naive(i int) []alarm.Naive {
	if !c.Naive || i > 0 {
		return nil
	}
	return alarm.NaiveRules
}

const notFound = math.MaxInt

// take sorts alarms into found cells and others; it gives each rising cell's delay in hours.
func (r *Rise) take(alarms []alarm.Alarm, rising map[alarm.Cell]bool, at time.Time) (delays []int) {
	first := map[alarm.Cell]int{}
	for _, a := range alarms {
		if !rising[a.Cell] {
			r.Others++
			continue
		}
		d := int(a.At.Sub(at) / time.Hour)
		if have, ok := first[a.Cell]; !ok || d < have {
			first[a.Cell] = d
		}
	}
	for c := range rising {
		d, ok := first[c]
		if !ok {
			d = notFound
		} else {
			r.Found++
		}
		delays = append(delays, d)
	}
	r.Of += len(rising)
	return delays
}

func (c Config) cell(tenant, domain, kind int) alarm.Cell {
	return alarm.Cell{Tenant: fmt.Sprintf("tenant-%02d", tenant), Domain: audit.Domains[domain], Kind: fmt.Sprintf("charter.kind_%02d", kind)}
}

// rising draws the cells that rise.
func (c Config) rising(seed uint64) map[alarm.Cell]bool {
	rnd := rand.New(rand.NewPCG(seed, 7))
	cells := map[alarm.Cell]bool{}
	for len(cells) < c.Rising {
		cells[c.cell(rnd.IntN(c.Tenants), rnd.IntN(len(audit.Domains)), rnd.IntN(c.Kinds))] = true
	}
	return cells
}

// history draws the past and so many days after it, in which some cells have a multiple of the rate.
func (c Config) history(seed uint64, days int, factor float64, rising map[alarm.Cell]bool) *alarm.History {
	rnd := rand.New(rand.NewPCG(seed, 42))
	hours := (c.Past + days) * 24
	h := alarm.NewHistory(start, hours, nil)
	poisson := inverse(c.PerHour)
	for tenant := range c.Tenants {
		for domain, name := range audit.Domains {
			counts := make([]int, hours)
			for i := range counts {
				counts[i], _ = slices.BinarySearch(poisson, rnd.Float64())
				at := start.Add(time.Duration(i) * time.Hour)
				h.Analysed(fmt.Sprintf("tenant-%02d", tenant), name, "rules-1", at, uint64(counts[i]), 0)
				h.Received(fmt.Sprintf("tenant-%02d", tenant), name, at, int64(counts[i]), int64(counts[i]))
			}
			for kind := range c.Kinds {
				cell := c.cell(tenant, domain, kind)
				usual := min(0.1, c.Rate*math.Exp(c.Spread*rnd.NormFloat64()))
				for i, n := range counts {
					p := usual
					if i >= c.Past*24 && rising[cell] {
						p *= factor
					}
					if k := binomial(rnd, n, p); k > 0 || i == 0 {
						h.Found(cell, "rules-1", start.Add(time.Duration(i)*time.Hour), uint64(k), 0)
					}
				}
			}
		}
	}
	return h
}

// inverse is the distribution function of Poisson counts, to be searched.
func inverse(mean float64) []float64 {
	var cdf []float64
	sum, term := 0.0, math.Exp(-mean)
	for i := 0; sum < 1-1e-12 && i < 10000; i++ {
		sum += term
		cdf = append(cdf, sum)
		term *= mean / float64(i+1)
	}
	return cdf
}

// binomial draws by skipping from hit to hit.
func binomial(rnd *rand.Rand, n int, p float64) (k int) {
	miss := math.Log1p(-p)
	for i := 0; ; k++ {
		i += 1 + int(math.Log(1-rnd.Float64())/miss)
		if i > n {
			return k
		}
	}
}

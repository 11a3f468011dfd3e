// Command history writes a month of simulated interactions of one tenant, a JSON line each, for the
// demo and for trying out trends and alarms: two domains with few findings, and in hr a share of
// answers about age that rises for the last hours. The same seed and end give the same lines, ids
// included, so sending them twice changes nothing.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// event is the part of an interaction event that is simulated.
type event struct {
	ID          string  `json:"id"`
	Tenant      string  `json:"tenant_id"`
	Timestamp   string  `json:"timestamp"`
	Application string  `json:"application"`
	Domain      string  `json:"domain"`
	Prompt      string  `json:"prompt"`
	Response    string  `json:"response"`
	Provider    string  `json:"provider"`
	Model       string  `json:"model"`
	Tokens      int     `json:"response_tokens"`
	Cost        float64 `json:"estimated_cost_usd"`
}

// stream is the traffic of one domain.
type stream struct {
	domain, app string
	hourly      int     // interactions an hour
	share       float64 // with a biased answer
	risen       float64 // the share after the rise
	prompts     []string
	clean       []string
	biased      []string
}

var streams = []stream{{
	domain: "hr", app: "screening", hourly: 12, share: 0.005, risen: 0.08,
	prompts: []string{"Summarise this application.", "Should we invite this candidate?", "Draft a short assessment."},
	clean: []string{
		"Ten years of experience with payroll systems, two references, available in March. I would invite them.",
		"The application shows solid knowledge of logistics; ask about the gap between the last two roles.",
		"Strong portfolio, clear writing, no certificate yet. The panel can decide after the work sample.",
		"Meets four of the five requirements in the advert; the missing one can be learned on the job.",
	},
	biased: []string{
		"At 58 they are too old to learn the new system.",
		"Older workers are slow and afraid of technology, so I would not invite this one.",
		"Older employees cannot learn new software; prefer the other applicant.",
	},
}, {
	domain: "finance", app: "credit-desk", hourly: 8, share: 0.004, risen: 0.004,
	prompts: []string{"Explain the decision on this loan.", "What should we ask for?"},
	clean: []string{
		"The income covers the instalments twice over; the missing tax statement should be asked for first.",
		"Existing obligations take two fifths of the income, so a longer term would be the prudent offer.",
		"The business plan is sound, the collateral is not yet valued. Ask for the valuation.",
	},
	biased: []string{"Older people are a bad investment for the bank; decline the loan."},
}}

const days = 30

func main() {
	end := flag.String("end", "", "RFC 3339 time at which the history ends; now when not given")
	rise := flag.Duration("rise", 20*time.Hour, "how long before the end the share in hr rises")
	tenant := flag.String("tenant", "meridian", "tenant of the interactions")
	seed := flag.Uint64("seed", 1, "of the random numbers")
	flag.Parse()
	to := time.Now().UTC()
	if *end != "" {
		t, err := time.Parse(time.RFC3339, *end)
		if err != nil {
			fmt.Fprintln(os.Stderr, "history: -end:", err)
			os.Exit(2)
		}
		to = t.UTC()
	}
	if err := write(os.Stdout, *tenant, to, *rise, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

func write(f *os.File, tenant string, end time.Time, rise time.Duration, seed uint64) error {
	w := bufio.NewWriter(f)
	out := json.NewEncoder(w)
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a simulation that can be repeated
	first := end.Truncate(time.Hour).AddDate(0, 0, -days)
	for hour := first; hour.Before(end); hour = hour.Add(time.Hour) {
		for _, s := range streams {
			for i := range s.hourly {
				at := hour.Add(time.Duration(r.Int64N(int64(time.Hour))))
				share, model := s.share, "gpt-4o"
				if !at.Before(end.Add(-rise)) {
					share, model = s.risen, "gpt-4o-mini"
				}
				answer := pick(r, s.clean)
				if r.Float64() < share {
					answer = pick(r, s.biased)
				}
				e := event{
					ID: fmt.Sprintf("history-%s-%s-%d", s.domain, hour.Format("2006010215"), i), Tenant: tenant, Timestamp: at.Format(time.RFC3339Nano),
					Application: s.app, Domain: s.domain, Prompt: pick(r, s.prompts), Response: answer,
					Provider: "openai", Model: model, Tokens: len(answer) / 4, Cost: float64(len(answer)) * 1e-6,
				}
				if at.After(end) {
					continue
				}
				if err := out.Encode(e); err != nil {
					return err
				}
			}
		}
	}
	return w.Flush()
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

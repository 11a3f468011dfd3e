package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/eval"
	"github.com/evenhand/evenhand/judge/agreement"
	"github.com/evenhand/evenhand/judge/compliance"
)

// calibration is how far a judging model agrees with labels and with itself.
type calibration struct {
	Task    string                       `json:"task"`
	Version string                       `json:"version"` // prompt and model
	Texts   int                          `json:"texts"`
	Repeats int                          `json:"repeats"`
	Failed  int                          `json:"failed"` // questions without an answer; they count nowhere else
	Last    string                       `json:"last_failure,omitempty"`
	All     agreement.Figures            `json:"all"` // of the majority of each text's answers
	Class   map[string]agreement.Figures `json:"by_class"`
	Self    selfAgreement                `json:"self"`
	Calls   int                          `json:"calls"`
	Input   int                          `json:"input_tokens"`
	Output  int                          `json:"output_tokens"`
	USD     float64                      `json:"cost_usd"`
	Seconds float64                      `json:"seconds"`
	Quotes  int                          `json:"unverified_quotes"`
	Mended  int                          `json:"repaired"` // answers that had to be asked for again
}

// selfAgreement is how far a model agrees with itself: over all answers, and apart where the criteria stood in the same order and
// where they did not. That it agrees less across orders is position bias.
type selfAgreement struct {
	agreement.Consistency
	Orders    int                   `json:"orders"`
	SameOrder agreement.Consistency `json:"same_order"`
	Turned    agreement.Consistency `json:"turned"`
}

// evaluator judges a text.
type evaluator interface {
	Evaluate(ctx context.Context, in compliance.Input) (*compliance.Result, error)
}

// askJudge asks the judging model about labelled texts.
func (cmd *evalCmd) askJudge(ctx context.Context, c *cli, std *stdio, rows []dataset.Row) error {
	if cmd.Repeats < 1 || cmd.Limit < 0 {
		return &settingsError{errors.New("--repeats: is below 1, or --limit below 0")}
	}
	if cmd.Task != classifier.Bias.String() && cmd.Task != classifier.Toxicity.String() {
		return &settingsError{fmt.Errorf("--task: %q; the judge answers bias and toxicity (its section on offensive language)", cmd.Task)}
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	model, err := s.Judge.newModel(nil)
	if err != nil {
		return err
	}
	defer model.Close()
	ev, err := s.newEvaluator(model)
	if err != nil {
		return err
	}
	rows = slices.DeleteFunc(rows, func(r dataset.Row) bool { _, ok := eval.Truth(&r, cmd.Task); return !ok })
	if len(rows) == 0 {
		return &settingsError{fmt.Errorf("no row says anything about %s", cmd.Task)}
	}
	if cmd.Limit > 0 && len(rows) > cmd.Limit {
		slices.SortStableFunc(rows, func(a, b dataset.Row) int { return cmp.Compare(xxhash.Sum64String(a.ID), xxhash.Sum64String(b.ID)) })
		rows = rows[:cmd.Limit]
	}
	out, err := calibrate(ctx, ev, rows, cmd.Task, cmd.Repeats, s.Judge.Concurrency)
	if err != nil {
		return err
	}
	out.Version = s.Judge.version()
	if cmd.JSON {
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	out.write(std.out)
	return nil
}

// calibrate asks about every row, repeats times, at most so many at once. In each run the rows begin
// at another place, so that a server that changes with time does not look alike, and the criteria stand in another order; the last
// runs come back to the first orders, so that what an order does is told from what repeating does. It ends when the
// model answers none of the first questions.
func calibrate(ctx context.Context, ev evaluator, rows []dataset.Row, task string, repeats, atOnce int) (*calibration, error) {
	out := &calibration{Task: task, Texts: len(rows), Repeats: repeats, Class: map[string]agreement.Figures{}}
	began := time.Now()
	orders := repeats/2 + 1
	answers := make([][][]bool, len(rows)) // of each row and order
	for i := range answers {
		answers[i] = make([][]bool, orders)
	}
	var mu sync.Mutex
	var last error
	answered := 0
	for run := range repeats {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(max(1, atOnce))
		for i := range rows {
			at := (i + run*len(rows)/repeats) % len(rows)
			g.Go(func() error {
				if gctx.Err() != nil {
					return gctx.Err()
				}
				res, err := ev.Evaluate(gctx, compliance.Input{Tenant: "eval", Text: rows[at].Text, Language: rows[at].Lang, Turn: run % orders})
				mu.Lock()
				defer mu.Unlock()
				if res != nil {
					out.Calls, out.Input, out.Output, out.USD = out.Calls+res.Calls, out.Input+res.Usage.Input, out.Output+res.Usage.Output, out.USD+res.CostUSD
				}
				if err != nil {
					out.Failed, out.Last = out.Failed+1, err.Error()
					if last = err; answered == 0 && out.Failed >= 5 {
						return fmt.Errorf("the model answered none of the first %d questions: %w", out.Failed, err)
					}
					return nil
				}
				answered++
				out.Quotes += res.Unverified
				if res.Repaired {
					out.Mended++
				}
				yes := res.Detected
				if task == classifier.Toxicity.String() {
					yes = res.Verdict.Offensive.Severity != compliance.None
				}
				answers[at][run%orders] = append(answers[at][run%orders], yes)
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
	}
	if answered == 0 {
		return nil, fmt.Errorf("the model answered nothing: %w", last)
	}
	var all agreement.Table
	classes := map[string]agreement.Table{}
	every := make([][]bool, len(rows))
	for i := range rows {
		every[i] = slices.Concat(answers[i]...)
		if len(every[i]) == 0 {
			continue
		}
		yes := 0
		for _, is := range every[i] {
			if is {
				yes++
			}
		}
		truth, _ := eval.Truth(&rows[i], task)
		said := 2*yes > len(every[i])
		all.Add(truth, said)
		of := rows[i].Characteristic
		if len(of) == 0 {
			of = []string{"none"}
		}
		for _, class := range of {
			t := classes[class]
			t.Add(truth, said)
			classes[class] = t
		}
	}
	out.All, out.Seconds = all.Figures(), time.Since(began).Seconds()
	out.Self.Consistency, out.Self.Orders = agreement.Consistent(every), orders
	out.Self.SameOrder, out.Self.Turned = agreement.ConsistentAcross(answers)
	for class, t := range classes {
		out.Class[class] = t.Figures()
	}
	return out, nil
}

func (c *calibration) write(out io.Writer) {
	fmt.Fprintf(out, "%s by %s: %d texts, %d times each\n\n", c.Task, c.Version, c.Texts, c.Repeats)
	fmt.Fprintf(out, "  %-22s %5s  %-16s %6s %6s  %5s %5s %5s %5s\n", "class", "n", "kappa (95 %)", "PABAK", "agree", "++", "+-", "-+", "--")
	line := func(name string, f agreement.Figures) {
		fmt.Fprintf(out, "  %-22s %5d  %5.2f %5.2f–%-4.2f %6.2f %6.2f  %5d %5d %5d %5d\n", name, f.N, f.Kappa, f.Low, f.High, f.PABAK, f.Agreement, f.Both, f.First, f.Second, f.Neither)
	}
	line("all", c.All)
	for _, class := range slices.Sorted(maps.Keys(c.Class)) {
		line(class, c.Class[class])
	}
	fmt.Fprintf(out, "\n  ++ label and judge say yes, +- the label alone, -+ the judge alone. Recall %.2f, false positives %.2f.\n", c.All.Recall, c.All.FPR)
	if c.Self.N > 0 {
		fmt.Fprintf(out, "  With itself: the same answer every time for %.0f %% of %d texts; %.0f %% of pairs of answers agree", 100*c.Self.Unanimous, c.Self.N, 100*c.Self.Pairs)
		if c.Self.SameOrder.N > 0 && c.Self.Turned.N > 0 {
			fmt.Fprintf(out, ", %.0f %% of those with the criteria in the same order, %.0f %% of those in different ones (%d orders)", 100*c.Self.SameOrder.Pairs, 100*c.Self.Turned.Pairs, c.Self.Orders)
		}
		fmt.Fprintln(out, ".")
	}
	cost := "cost not known (judge.price_input, judge.price_output)"
	if c.USD > 0 {
		cost = fmt.Sprintf("%.4f USD", c.USD)
	}
	fmt.Fprintf(out, "  %d calls, %d tokens in, %d out, %s, %.0f s. No answer %d times; %d answers mended, %d quotes not found.\n", c.Calls, c.Input, c.Output, cost, c.Seconds, c.Failed, c.Mended, c.Quotes)
	if c.Failed > 0 {
		fmt.Fprintf(out, "  Questions without an answer are in no figure above; the last: %s\n", inLine(c.Last))
	}
}

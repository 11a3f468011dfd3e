package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/eval"
)

type evalCmd struct {
	Data        []string `arg:"" help:"Labelled JSONL files, or folders of them." type:"existingpath"`
	By          []string `help:"Who is judged: rules, classifier, all, terms (the list of phrases alone); several give a part each." default:"rules,classifier,all" placeholder:"WHO"`
	Task        string   `help:"bias, toxicity, unsafe, or a safety category." default:"bias" placeholder:"TASK"`
	Split       string   `help:"Rows of this split: dev, train, all. Default dev; all where no row names a split." default:"dev" enum:"dev,train,all" placeholder:"SPLIT"`
	Source      []string `help:"Only rows of these sources." placeholder:"NAME"`
	Model       string   `help:"Model file instead of the one in the settings." type:"existingfile" placeholder:"FILE"`
	Predictions string   `help:"Judge these answers instead: JSONL of {\"id\",\"score\"} and, if the answerer decides, \"flag\"; or the output of scan, of which the task's flag and score count." type:"existingfile" placeholder:"FILE"`
	At          float64  `help:"Scores above it are flagged where predictions have no flag." default:"0.5" placeholder:"SCORE"`
	Among       string   `help:"Judge each text in the middle of others: JSONL of ordinary texts to draw sentences from." type:"existingfile" placeholder:"FILE"`
	Neighbours  int      `help:"With --among: sentences before each text, and as many behind it." default:"1" placeholder:"N"`
	Swaps       int      `help:"How often the group of each text is exchanged for another; 0 leaves it out." default:"2" placeholder:"N"`
	Judge       bool     `help:"Ask the judging model instead (settings judge.*): its agreement with the labels, with itself, and its cost."`
	Repeats     int      `help:"How often the judge is asked about each text; texts and criteria stand in another order each time." default:"1" placeholder:"N"`
	Limit       int      `help:"Ask the judge about so many texts, chosen by a hash of their id; 0 asks about all." default:"200" placeholder:"N"`
	Misses      string   `help:"Write each row whose answer is not its label, too: JSONL of id, source, line, by, truth, score and the rules that fired, without the text." placeholder:"FILE"`
	HTML        string   `help:"Write a page with plots, too." name:"html" placeholder:"FILE"`
	JSON        bool     `help:"Print JSON." name:"json"`
}

func (evalCmd) Help() string {
	return `Judges what the detectors say of labelled texts. Recall never stands without the rate of false positives (FPR), which
has the upper end of its 95 % interval beside it.

One object a line:
  {"id": "1", "text": "…", "label": {"bias": 1, "toxic": 0, "unsafe": 0},
   "characteristic": ["age"], "meta": {"category": "violence"}, "split": "dev", "source": "ours"}

Only the text is a must. A label is from 0 to 1, and one that is not there is unknown: the row counts for no task that needs it. --task bias reads label.bias,
toxicity label.toxic, unsafe label.unsafe, a safety category label.unsafe and meta.category.

A text that detectors could not look at, for want of time (30 times "detect.timeout") or by a fault of their own, stands in no figure: "unanswered" counts them, and the
exit status is 3. Those that --predictions says nothing of, or that scan could not look at, are counted there, too.

Examples:
  evenhand eval detectors/classifier/data
  evenhand eval mine.jsonl --split all --by rules,classifier --html eval.html
  evenhand eval mine.jsonl --among ordinary.jsonl --neighbours 3
  evenhand eval mine.jsonl --predictions other-tool.jsonl --json
  OPENAI_API_KEY=… evenhand eval mine.jsonl --judge --repeats 3`
}

// Run judges and prints.
func (cmd *evalCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if !slices.Contains(eval.Tasks(), cmd.Task) {
		return &settingsError{fmt.Errorf("--task: %q is not one of %s", cmd.Task, audit.List(eval.Tasks()))}
	}
	all, err := readData(cmd.Data)
	if err != nil {
		return err
	}
	if cmd.Split == "dev" && !slices.ContainsFunc(all, func(r dataset.Row) bool { return r.Split != "" }) {
		cmd.Split = "all"
	}
	rows := slices.DeleteFunc(all, func(r dataset.Row) bool {
		split := cmd.Split == "all" || r.Split == cmd.Split || r.Split == "" && cmd.Split == "train"
		return !split || len(cmd.Source) > 0 && !slices.Contains(cmd.Source, r.Source)
	})
	if len(rows) == 0 {
		return &settingsError{errors.New("no rows of that split and source; --split all takes every row")}
	}
	if !slices.ContainsFunc(rows, func(r dataset.Row) bool { _, ok := eval.Truth(&r, cmd.Task); return ok }) {
		return &settingsError{fmt.Errorf("no row says anything about %s; 'evenhand eval --help' shows what a row looks like", cmd.Task)}
	}
	if rows, err = cmd.among(rows); err != nil {
		return err
	}
	if cmd.Judge {
		return cmd.askJudge(ctx, c, std, rows)
	}
	misses, err := newMissList(cmd.Misses)
	if err != nil {
		return err
	}
	reports, err := cmd.reports(ctx, c, rows, misses)
	if err := errors.Join(err, misses.close()); err != nil {
		return err
	}
	if err := cmd.write(std.out, reports); err != nil {
		return err
	}
	if unanswered := slices.MaxFunc(reports, func(a, b *eval.Report) int { return cmp.Compare(a.Unanswered, b.Unanswered) }).Unanswered; unanswered > 0 {
		if cmd.Predictions != "" { // of some of the rows, as is usual
			fmt.Fprintf(std.err, "evenhand: %s has no answer of a whole analysis for %s; no figure holds them\n", cmd.Predictions, count(unanswered, "text"))
			return nil
		}
		fmt.Fprintf(std.err, "evenhand: %s could not be examined by all detectors, for want of time (30 times \"detect.timeout\") or by a fault of their own; no figure holds them\n",
			count(unanswered, "text"))
		return exitCode(3)
	}
	return nil
}

// reports judges who or what is asked for.
func (cmd *evalCmd) reports(ctx context.Context, c *cli, rows []dataset.Row, misses *missList) ([]*eval.Report, error) {
	if cmd.Predictions == "" {
		return cmd.judge(ctx, c, rows, misses)
	}
	said, err := readPredictions(cmd.Predictions, cmd.Task, cmd.At)
	if err != nil {
		return nil, err
	}
	answer := func(r *dataset.Row) (eval.Answer, bool) { a, ok := said[r.ID]; return a, ok }
	return []*eval.Report{eval.Evaluate(rows, answer, nil, eval.Options{Task: cmd.Task, By: cmd.Predictions, Miss: misses.of(cmd.Predictions)})}, nil
}

// missList is the file of rows whose answer is not their label; nil is none.
type missList struct {
	to  *os.File
	enc *json.Encoder
	err error // of the first row that could not be written
}

func newMissList(path string) (*missList, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, &settingsError{fmt.Errorf("--misses: %w", err)}
	}
	return &missList{to: f, enc: json.NewEncoder(f)}, nil
}

// of gives what takes the misses of an answerer.
func (m *missList) of(by string) func(*dataset.Row, eval.Answer, bool) {
	if m == nil {
		return nil
	}
	return func(r *dataset.Row, a eval.Answer, truth bool) {
		err := m.enc.Encode(struct {
			ID     string   `json:"id"`
			Source string   `json:"source"`
			Line   int      `json:"line"`
			By     string   `json:"by"`
			Truth  bool     `json:"truth"`
			Score  float64  `json:"score"`
			Found  []string `json:"found,omitempty"`
		}{r.ID, r.Source, r.Line, by, truth, a.Score, a.Found})
		m.err = cmp.Or(m.err, err)
	}
}

func (m *missList) close() error {
	if m == nil {
		return nil
	}
	if err := errors.Join(m.err, m.to.Close()); err != nil {
		return fmt.Errorf("--misses: %w", err)
	}
	return nil
}

// among puts the rows' texts between others where that is asked for.
func (cmd *evalCmd) among(rows []dataset.Row) ([]dataset.Row, error) {
	if cmd.Among == "" {
		return rows, nil
	}
	if cmd.Neighbours < 1 || cmd.Neighbours > 100 {
		return nil, &settingsError{fmt.Errorf("--neighbours: %d is not in 1..100", cmd.Neighbours)}
	}
	ordinary, err := readData([]string{cmd.Among})
	if err != nil {
		return nil, err
	}
	neighbours := eval.Neighbours(ordinary)
	if len(neighbours) == 0 {
		return nil, &settingsError{fmt.Errorf("--among %s: no sentences of 40 to 120 bytes that end with a full stop", cmd.Among)}
	}
	return eval.Among(rows, neighbours, cmd.Neighbours), nil
}

// judge asks the detectors.
func (cmd *evalCmd) judge(ctx context.Context, c *cli, rows []dataset.Row, misses *missList) (reports []*eval.Report, err error) {
	s, err := c.load(defaultSettings())
	if err != nil {
		return nil, err
	}
	if cmd.Model != "" {
		s.Classifier.Model = cmd.Model
	}
	s.Classifier.Enabled = true
	d, err := s.Classifier.detector()
	if err != nil {
		return nil, err
	}
	a, err := newAnalyzer(s, patient)
	if err != nil {
		return nil, err
	}
	j := answerer{analyzer: a, classifier: d, task: cmd.Task}
	for _, by := range cmd.By {
		ask, ok := map[string]func(context.Context, string) (eval.Answer, bool){"rules": j.rules, "classifier": j.learned, "all": j.all, "terms": j.terms}[by]
		if !ok {
			return nil, &settingsError{fmt.Errorf("--by: %q is not one of rules, classifier, all, terms", by)}
		}
		score := func(text string) (eval.Answer, bool) { return ask(ctx, text) }
		reports = append(reports, eval.Evaluate(rows, func(r *dataset.Row) (eval.Answer, bool) { return score(r.Text) }, score,
			eval.Options{Task: cmd.Task, By: by, Model: d.Info().Version, Swaps: cmd.Swaps, Miss: misses.of(by)}))
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return reports, nil
}

// answerer gives the detectors' answers to one task.
type answerer struct {
	analyzer   *detectors.Analyzer
	classifier *classifier.Detector
	task       string
}

func (j *answerer) about(kind string) bool {
	switch j.task {
	case classifier.Bias.String():
		return strings.HasPrefix(kind, "charter.") || strings.HasPrefix(kind, "terms.")
	case classifier.Toxicity.String():
		return kind == "toxicity"
	case eval.Unsafe:
		return strings.HasPrefix(kind, "safety.")
	}
	return kind == "safety."+j.task
}

// rules answers by all detectors that are not learned: the sum of the response's findings, capped at 1.
func (j *answerer) rules(ctx context.Context, text string) (eval.Answer, bool) {
	return j.found(ctx, text, func(f *audit.Finding) bool { return !strings.HasPrefix(f.Rule, classifier.ID+".") })
}

// terms answers by the list of phrases alone.
func (j *answerer) terms(ctx context.Context, text string) (eval.Answer, bool) {
	return j.found(ctx, text, func(f *audit.Finding) bool { return strings.HasPrefix(f.Kind, "terms.") })
}

// found answers by some findings of a verdict; a text that not all detectors could examine has no answer.
func (j *answerer) found(ctx context.Context, text string, by func(*audit.Finding) bool) (out eval.Answer, ok bool) {
	v := j.analyzer.Analyze(ctx, &audit.Interaction{Domain: audit.General, Response: text})
	if unexamined(v.Status) {
		return out, false
	}
	var sum audit.Score
	for i := range v.Findings {
		f := &v.Findings[i]
		if !by(f) {
			continue
		}
		if j.about(f.Kind) || j.task == classifier.Toxicity.String() && f.Abusive {
			out.Flagged = true
			sum += f.Score
			out.Found = append(out.Found, f.Rule)
			if f.Ground != "" {
				out.Grounds = append(out.Grounds, f.Ground)
			}
		}
	}
	out.Score = sum.Capped().Float()
	return out, true
}

func (j *answerer) learned(_ context.Context, text string) (out eval.Answer, ok bool) {
	s := j.classifier.Scores(j.analyzer.Prepare(&audit.Interaction{Domain: audit.General, Response: text}), audit.Output)
	for _, h := range classifier.Heads() {
		if h.String() == j.task || j.task == eval.Unsafe && h > classifier.Toxicity {
			out.Score = max(out.Score, s.Heads[h])
			out.Flagged = out.Flagged || s.Flagged[h]
		}
	}
	out.Grounds = s.Grounds
	return out, true
}

// all answers as a verdict does: either suffices. The score is that of two independent witnesses.
func (j *answerer) all(ctx context.Context, text string) (eval.Answer, bool) {
	r, ok := j.rules(ctx, text)
	if !ok {
		return r, false
	}
	l, _ := j.learned(ctx, text)
	out := eval.Answer{Score: 1 - (1-r.Score)*(1-l.Score), Flagged: r.Flagged || l.Flagged, Grounds: r.Grounds, Found: r.Found}
	if !r.Flagged {
		out.Grounds = l.Grounds
	}
	return out, true
}

// scanKeys are the keys of scan's scores and flags that answer a task.
var scanKeys = map[string]string{
	classifier.Bias.String(): "bias", classifier.Toxicity.String(): "toxicity", eval.Unsafe: "safety", classifier.HallucinationIndicator.String(): "hallucination",
}

// readPredictions reads another program's answers to a task, or those of scan.
func readPredictions(path, task string, at float64) (map[string]eval.Answer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--predictions: %w", err)
	}
	defer func() { _ = f.Close() }()
	out := map[string]eval.Answer{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for line := 1; s.Scan(); line++ {
		var p struct {
			ID     string             `json:"id"`
			Score  *float64           `json:"score"`
			Flag   *bool              `json:"flag"`
			Scores map[string]float64 `json:"scores"` // of scan, whose score and flag are those of all tasks
			Flags  map[string]bool    `json:"flags"`
			Status audit.Status       `json:"status"` // of scan, when the analysis is not done
		}
		err := json.Unmarshal(s.Bytes(), &p)
		if err == nil && p.ID != "" && unexamined(p.Status) {
			continue
		}
		if err != nil || p.ID == "" || p.Score == nil {
			return nil, &settingsError{fmt.Errorf("--predictions line %d: want {\"id\":\"…\",\"score\":0.5}", line)}
		}
		if p.Scores != nil && p.Flags != nil {
			score, ok := p.Scores[scanKeys[task]]
			flag, told := p.Flags[scanKeys[task]]
			if !ok || !told {
				return nil, &settingsError{fmt.Errorf("--predictions line %d: scan gives no score and flag of %s; it does of %v", line, task, slices.Sorted(maps.Keys(scanKeys)))}
			}
			p.Score, p.Flag = &score, &flag
		}
		a := eval.Answer{Score: *p.Score, Flagged: *p.Score > at}
		if p.Flag != nil {
			a.Flagged = *p.Flag
		}
		out[p.ID] = a
	}
	return out, s.Err()
}

func (cmd *evalCmd) write(out io.Writer, reports []*eval.Report) error {
	if cmd.HTML != "" {
		f, err := os.Create(cmd.HTML)
		if err != nil {
			return fmt.Errorf("--html: %w", err)
		}
		if err := errors.Join(eval.HTML(f, "Evenhand: detection figures", reports), f.Close()); err != nil {
			return fmt.Errorf("--html: %w", err)
		}
	}
	if cmd.JSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		return enc.Encode(reports)
	}
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := r.Text(out); err != nil {
			return err
		}
	}
	return nil
}

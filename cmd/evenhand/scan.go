package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/sources"
)

type scanCmd struct {
	File    string   `arg:"" optional:"" help:"JSONL file, gzip too; - or nothing reads stdin."`
	Fail    bool     `help:"Exit with status 3 when a text is flagged, too: for CI."`
	FailOn  []string `help:"Exit with status 3 when one of these of a text's flags is set, whether it asks for an action or not (what is only detected sets none): bias, toxicity, safety, pii, hallucination, gate." name:"fail-on" placeholder:"FLAG,…"`
	Workers int      `help:"Lines scanned at once; one a processor when not given." placeholder:"N"`
	Domain  string   `help:"Domain profile of lines that name none: general, hr, finance, healthcare, education." placeholder:"DOMAIN"`
}

func (scanCmd) Help() string {
	return `Reads one JSON object a line: {"id": "...", "text": "..."}, with a "domain" where it has one, or a full interaction
(see schemas/events); "text" beside prompt, response or messages is an error. Writes one verdict a line, in the order of
the input. A line that cannot be read gets {"id", "line", "error"} and the exit status is 3.
So it is when detectors could not look at a text, for want of time (30 times "detect.timeout") or by a fault of their own: "status" is
then "failed" (none looked) or "partial", with "reason" and "failed_by", and flags that are false say nothing.
A "reason" alone is "language": the text is in one that the detectors have not learnt, so bias and harm in it go unseen.

"flag" says that something asks for an action; "detected" that any bias was found. "flags" say what was found: "bias" that it is above the domain's
threshold or that a learned detector found it, so wording that is only "detected" (a job title, say) sets it not. Insults that only rules of wording find, signs of
hallucination below the threshold, and personal data but for cards, accounts, social security numbers and credentials ask for no action: "flags" are set,
"flag" is not, "action" is none. See --fail-on for these. "mitigation_action" is a suggestion for whoever looks at the text: it stands beside any finding
of bias, beside leaked personal data and what a rule of wording suggests, asked for or not, and orders nothing.

"scores" tell how sure or how grave it is, 0 to 1, whoever said it: the sum of rules or what a learned detector says, whichever is higher; of the latter
.5 and above was found, below was not. "rules" has the sums of rules alone, "grades" the probabilities of learned detectors alone, found above the head's
threshold. Those of the models that ship, with classifier.encoder balanced, in texts of up to 320 bytes, up to 1,024, and longer:

` + scanThresholds + `
A text that is suspicious as a whole has .7 for harm. In languages that no encoder reads bias and toxicity alone are found, above .74 or .75 in texts of
one sentence, .92 or .96 in others. Hallucination is graded and never found by its grade.

"start" and "end" of a finding count the code points of the text that it stands in, the response or, where "side" is input, the prompt: from "start",
before "end". They are neither bytes nor the units of UTF-16 that JavaScript counts.

Examples:
  echo '{"id":"1","text":"Women are too emotional to lead."}' | evenhand scan
  evenhand scan texts.jsonl --domain hr > verdicts.jsonl
  evenhand scan answers.jsonl --fail > verdicts.jsonl
  evenhand scan answers.jsonl --fail-on pii,safety > verdicts.jsonl`
}

// scanThresholds are those of the shipped encoders; TestScanHelpHasTheThresholds holds them to the models.
const scanThresholds = `                         English                  other languages
  bias                   .70   .74   .43        .73   .94   .94
  toxicity               .58   .59   .48        .71   .92   .92
  violence               .55   .50   .50        .40   .32   .30
  self_harm              .53   .50   .50        .30   .38   .38
  illegal_instructions   .61   .61   .50        .46   .33   .30
`

// scanned is one line of output.
type scanned struct {
	ID              string        `json:"id"`
	Score           audit.Score   `json:"score"`    // the highest of Scores
	Flag            bool          `json:"flag"`     // an action is asked for
	Detected        bool          `json:"detected"` // bias_detected of the record: any finding of bias, below the threshold too
	Action          audit.Action  `json:"action"`
	Scores          scanScores    `json:"scores"`
	Flags           scanFlags     `json:"flags"`
	Types           []string      `json:"types"`
	Characteristics []string      `json:"characteristics"`
	Categories      []string      `json:"categories"`
	Rules           scanRules     `json:"rules"`
	Grades          scanGrades    `json:"grades,omitempty"`
	Findings        []scanFinding `json:"findings"`
	Masked          string        `json:"masked,omitempty"` // the response with its personal data masked, when there is any
	Mitigation      *scanAdvice   `json:"mitigation_action,omitempty"`
	Wording         scanWording   `json:"wording,omitempty"` // scores of wording and of groups compared, by name
	Status          audit.Status  `json:"status,omitempty"`  // only when the analysis is not done
	Reason          string        `json:"reason,omitempty"`  // code of it; alone: "language", where the detectors have not learnt the text's
	FailedBy        []string      `json:"failed_by,omitempty"`
}

// scanRules is what seeds 000 and 001 compute, from rules alone: sums as they are, not capped.
type scanRules struct {
	Bias      audit.Score `json:"bias"`
	Safety    audit.Score `json:"safety"`
	Threshold audit.Score `json:"threshold"` // of the domain: bias above it is flagged
	Flag      bool        `json:"flag"`
	Unsafe    bool        `json:"unsafe"`
}

// scanGrades are how sure learned detectors are of each head, found or not.
type scanGrades map[string]audit.Score

// scanScores and scanFlags unite rules and learned detectors. What a head grades counts half unless it is found, and at least one half then: thresholds
// differ by head, language and length, and one cut should tell what was found.
type scanScores struct {
	Bias          audit.Score `json:"bias"`
	Toxicity      audit.Score `json:"toxicity"`
	Safety        audit.Score `json:"safety"`
	PII           audit.Score `json:"pii"`
	Hallucination audit.Score `json:"hallucination"`
}

type scanFlags struct {
	Bias          bool `json:"bias"`
	Toxicity      bool `json:"toxicity"`
	Safety        bool `json:"safety"`
	PII           bool `json:"pii"`
	Hallucination bool `json:"hallucination"`
	Gate          bool `json:"gate"`
}

// scanFlagNames are the names of flags as --fail-on takes them.
var scanFlagNames = []string{"bias", "toxicity", "safety", "pii", "hallucination", "gate"}

// any tells whether one of some flags is set, by names.
func (f scanFlags) any(names []string) bool {
	set := map[string]bool{"bias": f.Bias, "toxicity": f.Toxicity, "safety": f.Safety, "pii": f.PII, "hallucination": f.Hallucination, "gate": f.Gate}
	return slices.ContainsFunc(names, func(name string) bool { return set[name] })
}

type scanFinding struct {
	Rule           string         `json:"rule"`
	Characteristic string         `json:"characteristic,omitempty"`
	Category       string         `json:"category,omitempty"`
	Severity       audit.Severity `json:"severity,omitempty"`
	Score          audit.Score    `json:"score"`
	Start          uint32         `json:"start"`
	End            uint32         `json:"end"`
	Side           audit.Side     `json:"side,omitempty"` // only for findings in the prompt
	Evidence       string         `json:"evidence"`
	Replace        string         `json:"replace,omitempty"` // wording to use instead, of the rule
}

// scanAdvice is what is suggested, in the words of rules.
type scanAdvice struct {
	Type    string `json:"type"`
	Details string `json:"details"`
}

// scanWording are the scores of detector linguistic.
type scanWording map[string]audit.Score

// wordingScores names them; toxicity stands among the scores already.
var wordingScores = []string{
	"gendered_language", "microaggression", "job_advert_wording", "idiom", "language", "sentiment", "representation_score", "sentiment_divergence",
}

type scanJob struct {
	line int
	in   []byte
	out  *bytes.Buffer
	bad  bool // not read
	half bool // not examined, or not by all detectors
	flag bool
	done chan struct{}
}

// scanTally counts lines that no verdict, or no whole one, could be given for, and those that were flagged.
type scanTally struct{ bad, half, flagged int }

// Run scans stdin to stdout.
func (cmd *scanCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	d := defaultSettings()
	d.Tenant.Default = "scan"
	s, err := c.load(d)
	if err != nil {
		return err
	}
	if cmd.Domain != "" && !audit.Domain(cmd.Domain).Known() {
		return &settingsError{fmt.Errorf("--domain: %q is not one of %s", cmd.Domain, domainNames())}
	}
	for _, name := range cmd.FailOn {
		if !slices.Contains(scanFlagNames, name) {
			return &settingsError{fmt.Errorf("--fail-on: %q is not one of %s", name, strings.Join(scanFlagNames, ", "))}
		}
	}
	if err := inRange("--workers", cmd.Workers, 0, 1024); err != nil {
		return err
	}
	a, err := newAnalyzer(s, graded, patient)
	if err != nil {
		return err
	}
	o := s.decoder()
	o.Domain = audit.Domain(cmd.Domain)
	sc := &scanner{analyzer: a, decoder: ingest.NewDecoder(o), now: time.Now().UTC().Truncate(time.Millisecond), flags: cmd.FailOn}
	var in io.Reader
	if cmd.File == "" || cmd.File == "-" {
		in = std.input(ctx, "one JSON object a line")
	} else {
		f, err := os.Open(cmd.File)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	if in, err = unpacked(bufio.NewReaderSize(in, 1<<20)); err != nil {
		return err
	}
	n, err := sc.run(ctx, in, std.out, cmd.Workers)
	if err != nil {
		return err
	}
	if n.bad > 0 {
		fmt.Fprintf(std.err, "evenhand: %s could not be read; the output has an \"error\" for each\n", count(n.bad, "line"))
	}
	if n.half > 0 {
		fmt.Fprintf(std.err, "evenhand: %s could not be examined by all detectors; the output has \"status\" and \"reason\" for each\n", count(n.half, "line"))
	}
	fail := (cmd.Fail || len(cmd.FailOn) > 0) && n.flagged > 0
	if fail {
		fmt.Fprintf(std.err, "evenhand: %s flagged\n", count(n.flagged, "text"))
	}
	if n.bad+n.half > 0 || fail {
		return exitCode(3)
	}
	return nil
}

type scanner struct {
	analyzer *detectors.Analyzer
	decoder  *ingest.Decoder
	now      time.Time
	flags    []string // that count as flagged; none: what asks for an action
}

// run scans in any order and writes in the order of the input; it holds a few hundred lines at once.
func (sc *scanner) run(ctx context.Context, in io.Reader, out io.Writer, workers int) (n scanTally, err error) {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	g, ctx := errgroup.WithContext(ctx)
	jobs, ordered := make(chan *scanJob, 64*workers), make(chan *scanJob, 64*workers)
	g.Go(func() error {
		defer close(jobs)
		defer close(ordered)
		r := bufio.NewReaderSize(in, 1<<20)
		skipMark(r)
		for line := 1; ; line++ {
			b, err := readLine(r)
			if len(bytes.TrimSpace(b)) > 0 {
				j := &scanJob{line: line, in: b, done: make(chan struct{})}
				select {
				case ordered <- j:
				case <-ctx.Done():
					return ctx.Err()
				}
				jobs <- j
			}
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("stdin: %w", err)
			}
		}
	})
	for range workers {
		g.Go(func() error {
			for j := range jobs {
				sc.scan(ctx, j)
				close(j.done)
			}
			return nil
		})
	}
	g.Go(func() error {
		w := bufio.NewWriterSize(out, 1<<16)
		for j := range ordered {
			select {
			case <-j.done:
			default: // nothing ready: show what there is to a reader that waits
				if err := w.Flush(); err != nil {
					return fmt.Errorf("stdout: %w", err)
				}
				<-j.done
			}
			if j.bad {
				n.bad++
			}
			if j.half {
				n.half++
			}
			if j.flag {
				n.flagged++
			}
			if _, err := w.Write(j.out.Bytes()); err != nil {
				return fmt.Errorf("stdout: %w", err)
			}
		}
		return w.Flush()
	})
	err = g.Wait()
	return n, err
}

func readLine(r *bufio.Reader) ([]byte, error) {
	b, err := r.ReadBytes('\n')
	return bytes.TrimSuffix(b, []byte("\n")), err
}

// scan fills the job's output line.
func (sc *scanner) scan(ctx context.Context, j *scanJob) {
	j.out = &bytes.Buffer{}
	enc := json.NewEncoder(j.out)
	enc.SetEscapeHTML(false)
	id, in, why := sc.read(j.in)
	if why != "" {
		j.bad = true
		_ = enc.Encode(map[string]any{"id": id, "line": j.line, "error": why}) // into memory: cannot fail
		return
	}
	v := sc.analyzer.Analyze(ctx, in)
	j.half = unexamined(v.Status)
	out := verdictLine(id, in, v, sc.analyzer.Advice)
	if j.flag = out.Flag; len(sc.flags) > 0 {
		j.flag = out.Flags.any(sc.flags)
	}
	_ = enc.Encode(out)
}

// unexamined says that detectors, some or all, could not look at the text.
func unexamined(s audit.Status) bool { return s == audit.Failed || s == audit.Partial }

// read takes the short form {"id","text","domain"} or a full interaction.
func (sc *scanner) read(line []byte) (id string, in *audit.Interaction, why string) {
	short := sc.decoder.ReadShort(line)
	id = short.ID
	if f := short.Fault; f != nil {
		return id, nil, f.Code + ": " + f.Field + ": " + f.Message
	}
	if short.Given {
		return id, &audit.Interaction{ID: audit.DeriveID("scan", id), GivenID: id, Tenant: "scan", Time: sc.now, Domain: short.Domain, Response: short.Text}, ""
	}
	in, rej := sc.decoder.Decode(sources.Record{Time: sc.now, Value: line}, audit.Origin{Topic: "scan", BrokerTime: sc.now})
	if rej != nil {
		return id, nil, rej.Reason + ": " + rej.Detail + meantText(line, rej)
	}
	return id, in, ""
}

// meantText says where a mistyped text made an event of a line.
func meantText(line []byte, rej *audit.Rejected) string {
	if rej.Reason != ingest.UnknownField {
		return ""
	}
	row, _ := members(line) // an event's fault is said already
	for name := range row {
		if !ingest.KnownField(name) && ingest.Slip(name, "text") {
			return "; did you mean text?"
		}
	}
	return ""
}

func verdictLine(id string, in *audit.Interaction, v *audit.Verdict, adviceOf func(rule string) audit.Advice) scanned {
	out := scanned{
		ID: id, Flag: v.Action != audit.NoAction, Detected: v.Detected, Action: v.Action,
		Scores: scanScores{v.BiasSum.Capped(), v.Score(audit.ScoreToxicity), v.SafetySum.Capped(), v.Score(audit.ScorePII), v.Score(audit.ScoreHallucination)},
		Rules:  scanRules{v.BiasSum, v.SafetySum, v.Threshold, v.Flagged, v.Unsafe},
		Types:  []string{}, Characteristics: []string{}, Categories: []string{}, Findings: []scanFinding{},
	}
	out.Flags = scanFlags{Bias: v.Flagged, Toxicity: out.Scores.Toxicity > 0, Safety: v.Unsafe, PII: out.Scores.PII > 0, Hallucination: out.Scores.Hallucination > 0, Gate: v.Gated}
	out.unite(v)
	if out.Reason = v.Reason; v.Status != audit.Done {
		out.Status, out.FailedBy = v.Status, v.FailedBy
	}
	for _, s := range v.Scores {
		if slices.Contains(wordingScores, s.Name) {
			if out.Wording == nil {
				out.Wording = scanWording{}
			}
			out.Wording[s.Name] = s.Value
		}
	}
	var advice []audit.Advice
	texts := in.Evidence()
	for _, f := range v.Findings {
		sf := scanFinding{Rule: f.Rule, Severity: f.Severity, Score: f.Score, Start: f.Span.Start, End: f.Span.End, Evidence: texts.At(f.Side, f.Span)}
		sf.Characteristic = string(f.Ground)
		if f.Ground == "" {
			sf.Category = f.Kind
			if c, ok := strings.CutPrefix(f.Kind, "safety."); ok {
				sf.Category = c
			}
		}
		if f.Side == audit.Input {
			sf.Side = f.Side
		} else {
			advice = append(advice, adviceOf(f.Rule))
			sf.Replace = adviceOf(f.Rule).Replace
			out.Types = appendNew(out.Types, f.Entity)
			out.Flags.PII = out.Flags.PII || f.Entity != ""
			out.Characteristics = appendNew(out.Characteristics, sf.Characteristic)
			out.Categories = appendNew(out.Categories, sf.Category)
		}
		out.Findings = append(out.Findings, sf)
	}
	if masked := pii.Mask(in.Response, audit.Output, v.Findings); masked != in.Response {
		out.Masked = masked
	}
	if v.Mitigation != "" {
		out.Mitigation = &scanAdvice{v.Mitigation, audit.MitigationDetails(v.Mitigation, advice...)}
	}
	slices.Sort(out.Types)
	slices.Sort(out.Characteristics)
	slices.Sort(out.Categories)
	return out
}

// unite joins what learned detectors say to the scores and flags of rules.
func (out *scanned) unite(v *audit.Verdict) {
	for _, g := range v.Grades {
		if out.Grades == nil {
			out.Grades = scanGrades{}
		}
		out.Grades[g.Name] = g.Value
		switch s := &out.Scores; g.Name {
		case classifier.Bias.String():
			s.Bias = max(s.Bias, g.Value/2)
		case classifier.Toxicity.String():
			s.Toxicity = max(s.Toxicity, g.Value/2)
		case classifier.HallucinationIndicator.String():
			s.Hallucination = max(s.Hallucination, g.Value/2)
		default:
			s.Safety = max(s.Safety, g.Value/2)
		}
	}
	for _, f := range v.Findings {
		if !strings.HasPrefix(f.Rule, classifier.ID+".") || f.Side != audit.Output {
			continue
		}
		sure := max(f.Confidence, audit.One/2)
		switch s := &out.Scores; {
		case f.Ground != "":
			out.Flags.Bias, s.Bias = true, max(s.Bias, sure)
		case f.Kind == classifier.Toxicity.String():
			out.Flags.Toxicity, s.Toxicity = true, max(s.Toxicity, sure)
		default:
			out.Flags.Safety, s.Safety = true, max(s.Safety, sure)
		}
	}
	s := &out.Scores
	out.Score = max(s.Bias, s.Toxicity, s.Safety, s.PII, s.Hallucination)
}

func domainNames() string {
	names := make([]string, len(audit.Domains))
	for i, d := range audit.Domains {
		names[i] = string(d)
	}
	return strings.Join(names, ", ")
}

func appendNew(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

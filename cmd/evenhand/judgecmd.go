package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/judge/compliance"
	"github.com/evenhand/evenhand/judge/lane"
	"github.com/evenhand/evenhand/sinks/stream"
)

type judgeCmd struct {
	storeFlags
	Text    string `arg:"" optional:"" help:"The text, a file that holds it, or - for stdin." default:"-"`
	ID      string `help:"Judge this stored interaction; the verdict joins its record." name:"id" placeholder:"ID"`
	Tenant  string `help:"Whose interaction it is, and whose budget is used; tenant.default when not given." placeholder:"NAME"`
	Domain  string `help:"Domain of the text: general, hr, finance, healthcare, education." default:"general" placeholder:"NAME"`
	Explain bool   `help:"Print reasons and rewrites, too."`
	JSON    bool   `help:"Print the judge's JSON (seed schema: schemas/judge/verdict.json)." name:"json"`
}

func (judgeCmd) Help() string {
	return `Asks the judging model of the settings judge.* (or OPENAI_API_KEY) about bias, inclusive language and offensive
language. Exit status 3 when the text is non-compliant.

Examples:
  evenhand judge "Women are too emotional to lead."
  evenhand judge letter.txt --domain hr --explain
  evenhand judge --id 01a1fdf4-1904-7055-bf3b-caa280a64776 --tenant acme`
}

// Run judges one text.
func (cmd *judgeCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if !audit.Domain(cmd.Domain).Known() {
		return &settingsError{fmt.Errorf("--domain: %q is not one of %s", cmd.Domain, audit.List(audit.Domains))}
	}
	var words string
	var err error
	if cmd.ID != "" {
		words, err = cmd.stored(ctx, c)
	} else {
		words, err = cmd.given(ctx, c, std)
	}
	if err != nil {
		return err
	}
	var v compliance.Verdict
	if err := json.Unmarshal([]byte(words), &v); err != nil {
		return fmt.Errorf("the stored verdict cannot be read: %w", err)
	}
	if cmd.JSON {
		var indented json.RawMessage = []byte(words)
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(indented)
	} else {
		cmd.print(std.out, &v)
	}
	if err == nil && v.Overall.Assessment == compliance.NonCompliant {
		return exitCode(3)
	}
	return err
}

// given judges a text of the command line.
func (cmd *judgeCmd) given(ctx context.Context, c *cli, std *stdio) (string, error) {
	s, err := c.load(defaultSettings())
	if err != nil {
		return "", err
	}
	text := cmd.Text
	if text == "-" {
		b, err := io.ReadAll(std.input(ctx, "the text"))
		if err != nil {
			return "", err
		}
		text = string(b)
	} else if b, err := os.ReadFile(text); err == nil {
		text = string(b)
	}
	model, err := s.Judge.newModel(nil)
	if err != nil {
		return "", err
	}
	defer model.Close()
	ev, err := s.newEvaluator(model)
	if err != nil {
		return "", err
	}
	tenant := cmd.Tenant
	if tenant == "" {
		tenant = "default"
	}
	res, err := ev.Evaluate(ctx, compliance.Input{Tenant: tenant, Text: strings.TrimRight(text, "\r\n"), Domain: cmd.Domain})
	if err != nil {
		return "", advised(err)
	}
	b, err := json.Marshal(res.Verdict)
	return string(b), err
}

// advised adds to an error of the model what to look at, or when to ask again.
func advised(err error) error {
	if advice := llm.Advice(err); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	if later := (*llm.Later)(nil); errors.As(err, &later) && later.After > 0 {
		return fmt.Errorf("%w; ask again in %v", err, max(time.Second, later.After.Round(time.Second)))
	}
	return err
}

// stored judges an interaction of the store and keeps the verdict.
func (cmd *judgeCmd) stored(ctx context.Context, c *cli) (string, error) {
	id, err := audit.ParseID(cmd.ID)
	if err != nil {
		return "", &settingsError{fmt.Errorf("--id: %w", err)}
	}
	s, conn, err := cmd.open(c, engine.Writer)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	inUp := len(s.Kafka.Brokers) == 0
	if inUp {
		up, ok := findRunning(s.DataDir)
		if !ok {
			return "", notUp(s.DataDir, "name its folder with --data-dir, or set kafka.brokers")
		}
		s.Kafka.Brokers = []string{up.Kafka}
		if s.Tenant.Default == "" {
			s.Tenant.Default = "default" // as 'up' has it
		}
	}
	tenant := cmd.Tenant
	if tenant == "" {
		tenant = s.Tenant.Default
	}
	if tenant == "" {
		return "", &settingsError{errors.New("--tenant: whose interaction is it? tenant.default is not set")}
	}
	quiet := slog.New(slog.DiscardHandler)
	publisher, err := stream.New(s.kafka(), stream.DefaultConfig(), stream.Options{Group: s.Kafka.Group})
	if err != nil {
		return "", err
	}
	defer func() { _ = publisher.Close(context.WithoutCancel(ctx)) }()
	e, err := newAsker(s, conn, s.ClickHouse.Database, s.kafka(), nil, quiet)
	if err != nil {
		return "", err
	}
	defer func() { _ = e.close() }() //nolint:contextcheck // it has a limit of its own
	m, err := s.Judge.newModel(nil)
	if err != nil {
		return "", err
	}
	defer m.Close()
	ev, err := s.newEvaluator(m)
	if err != nil {
		return "", err
	}
	sender, err := s.Evaluations.sender(ctx, nil, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = closeEvaluations(context.WithoutCancel(ctx), sender) }()
	sink := s.sinkIn(conn, s.ClickHouse.Database)
	if sink.Seal, err = s.sealKey(inUp); err != nil {
		return "", err
	}
	if err := e.answers(s, conn, s.ClickHouse.Database, sink, publisher, lane.Parts{Evaluator: ev, Told: sender.Record}); err != nil {
		return "", err
	}
	v, words, err := e.lane.Ask(ctx, tenant, id)
	switch {
	case err != nil:
		return "", advised(err)
	case v.Status != audit.Done:
		return "", fmt.Errorf("the judge gave no verdict: %s, %s", v.Status, v.Reason)
	}
	return words, nil
}

// print writes a verdict for people.
func (cmd *judgeCmd) print(out io.Writer, v *compliance.Verdict) {
	fmt.Fprintf(out, "%s (confidence %.2f): %s\n", inLine(v.Overall.Assessment), v.Overall.Confidence, inLine(v.Overall.Summary))
	fmt.Fprintf(out, "  bias       %5.1f  %s\n  dei        %5.1f  %s (100 is best)\n  offensive  %5.1f  %s\n", v.Bias.Score, inLine(v.Bias.Risk), v.DEI.Score, inLine(v.DEI.Risk), v.Offensive.Score, inLine(v.Offensive.Severity))
	line := func(what, excerpt string, at compliance.Span, why string) {
		fmt.Fprintf(out, "  %-34s [%d,%d)  %q\n", inLine(what), at[0], at[1], excerpt)
		if cmd.Explain && why != "" {
			fmt.Fprintf(out, "      %s\n", inLine(why))
		}
	}
	for _, f := range v.Bias.Findings {
		class := ""
		if f.ProtectedClass != nil {
			class = " " + *f.ProtectedClass
		}
		line("bias "+f.Type+class, f.Excerpt, f.Span, f.Rationale)
	}
	for _, f := range v.DEI.Violations {
		line("dei "+f.Guideline, f.Excerpt, f.Span, strings.TrimSpace(f.Issue+" "+f.Recommendation))
	}
	for _, f := range v.Offensive.Instances {
		line("offensive "+f.Category+" "+f.Severity, f.Excerpt, f.Span, f.Rationale)
	}
	if !cmd.Explain {
		return
	}
	for _, r := range v.Remediations {
		fmt.Fprintf(out, "  instead of %q: %q\n", r.OriginalExcerpt, r.SuggestedRewrite)
	}
	for _, flag := range v.RedFlags {
		fmt.Fprintf(out, "  red flag: %s\n", inLine(flag))
	}
}

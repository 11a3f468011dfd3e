package hybrid

import (
	"context"
	"embed"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"text/template"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/llm"
)

//go:embed prompt
var promptFiles embed.FS

//go:embed rating.json
var ratingSchema []byte

var prompts = template.Must(template.ParseFS(promptFiles, "prompt/*.txt"))

func render(name string, data any) string {
	var b strings.Builder
	if err := prompts.ExecuteTemplate(&b, name, data); err != nil {
		return "" // the templates are ours and tested
	}
	return strings.TrimSpace(b.String())
}

// maxAnalysis bounds the model's words, in code points.
const maxAnalysis = 1000

// maxOutput bounds an answer in tokens: ten phrases and two sentences have some five hundred.
const maxOutput = 1500

// ask gets a rating of one text, with one repetition for an answer that cannot be read.
func (e *Evaluator) ask(ctx context.Context, tenant string, s side) Rating {
	no := func(reason string) Rating { return Rating{Side: s.side, Reason: reason} }
	if e.o.Model == nil {
		return no(NoLLM)
	}
	if e.o.Hostile != nil && e.o.Hostile(ctx, s.text) {
		return no(Injection)
	}
	seen := s.text
	if e.o.Mask != nil {
		masked, err := e.o.Mask(ctx, s.text)
		if err != nil {
			return no(Unavailable)
		}
		seen = masked
	}
	seen, cut := head(strings.ToValidUTF8(seen, "\uFFFD"), MaxText)
	q, canary, err := e.question(seen)
	if err != nil {
		return no(Unavailable)
	}
	q.Tenant = tenant
	r := Rating{Side: s.side, Truncated: cut}
	for range 2 {
		a, err := e.o.Model.Complete(ctx, q)
		if err != nil {
			r.Reason = reasonOf(err)
			return r
		}
		r.calls, r.model, r.cost = r.calls+1, a.Model, r.cost+a.CostUSD
		r.usage.Input, r.usage.Output = r.usage.Input+a.Usage.Input, r.usage.Output+a.Usage.Output
		if strings.Contains(a.Text, canary) {
			r.Reason = Injection
			return r
		}
		if a.Refusal != "" || a.Finish == "content_filter" {
			r.Reason = Refused
			return r
		}
		said, fault := decode(a.Text)
		if fault == "" {
			r.take(said, seen, s.text)
			return r
		}
		q.Messages = append(q.Messages[:1:1], llm.Message{Role: "assistant", Content: cutAnswer(a.Text)}, llm.Message{Role: "user", Content: render("repair.txt", fault)})
	}
	r.Reason = Unreadable
	return r
}

// cutAnswer is as much of an unreadable answer as is shown to the model again.
func cutAnswer(text string) string {
	text, _ = head(strings.ToValidUTF8(text, "\uFFFD"), MaxText)
	if strings.TrimSpace(text) == "" {
		return "(nothing)"
	}
	return text
}

// question puts a text where it cannot end its own quotation: one line of JSON between two lines that nobody can guess.
func (e *Evaluator) question(text string) (q llm.Request, canary string, err error) {
	var b [32]byte
	e.mu.Lock()
	_, err = io.ReadFull(e.o.Random, b[:])
	e.mu.Unlock()
	if err != nil {
		return q, "", err
	}
	nonce, canary := hex.EncodeToString(b[:16]), hex.EncodeToString(b[16:])
	custom := ""
	if len(e.cfg.CustomTerms) > 0 {
		list, _ := json.Marshal(e.cfg.CustomTerms) // strings: cannot fail
		custom = string(list)
	}
	quoted, _ := json.Marshal(text)
	return llm.Request{
		Model:     e.cfg.Model,
		System:    render("system.txt", struct{ Categories, Terms, Nonce, Canary string }{strings.Join(e.categories(), ", "), custom, nonce, canary}),
		Messages:  []llm.Message{{Role: "user", Content: render("user.txt", struct{ Nonce, Text string }{nonce, string(quoted)})}},
		Schema:    &llm.Schema{Name: "bias_rating", JSON: ratingSchema},
		MaxTokens: maxOutput,
		Key:       e.cfg.APIKey,
	}, canary, nil
}

// head gives the first n code points, and whether there are more.
func head(text string, n int) (string, bool) {
	for i := range text {
		if n == 0 {
			return text[:i], true
		}
		n--
	}
	return text, false
}

// take takes an answer about a text: seen is what the model saw of it.
func (r *Rating) take(a answer, seen, original string) {
	if *a.AddressesEvaluator {
		r.Reason = Injection
		return
	}
	r.Rating = *a.Rating
	r.Analysis, _ = head(a.Analysis, maxAnalysis)
	for _, p := range a.Phrases {
		if strings.TrimSpace(p.Phrase) == "" || !strings.Contains(seen, p.Phrase) {
			r.Unverified++
			continue
		}
		p.Issue, _ = head(p.Issue, maxAnalysis)
		if at := strings.Index(original, p.Phrase); at >= 0 {
			span := audit.SpanOf(original, at, at+len(p.Phrase))
			p.Span = &span
		}
		r.Phrases = append(r.Phrases, p)
	}
	if r.Rating > 4 && len(r.Phrases) > 0 { // it says "no bias" and shows some: the stricter holds
		r.Rating = 4
	}
	r.Score = audit.ScoreOf((r.Rating - 1) / 4)
}

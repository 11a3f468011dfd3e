package pii

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
)

// NotMasked stands in the place of all texts of an interaction that could not be looked at.
const NotMasked = "[NOT_MASKED]"

// Masker puts placeholders in the place of personal data in every text of a record, before it is kept. It is safe for
// concurrent use.
type Masker struct{ find *detectors.Analyzer }

// NewMasker makes a masker that finds what the detectors find, as a rule a [Detector]. It takes about 10 ms, and 7 MB.
func NewMasker(ds ...detectors.Detector) (*Masker, error) {
	p := detectors.DefaultPolicy()
	p.DetectTimeout = time.Hour // to be slow is better than to keep what nobody looked at
	a, err := detectors.NewAnalyzer(p, ds...)
	if err != nil {
		return nil, err
	}
	return &Masker{a}, nil
}

// Record gives the record as it may be kept: with placeholders, the same one for the same value in all of its texts, in
// the strings of JSON too, where names are left as they are. The verdict is of the text as it came, and its spans
// are moved to the masked one. Who the user is, declared in fields of its own, stays; so does the digest, which is of
// the event as it came. Neither interaction nor verdict of r is changed, and the same record gives the same result.
// Where nothing can be found out, all texts are [NotMasked].
func (m *Masker) Record(ctx context.Context, r audit.Record) audit.Record {
	v := r.Verdict
	if v == nil || v.Personal == nil { // nobody looked, or could not
		v = m.find.Analyze(ctx, r.Interaction)
	}
	in := *r.Interaction
	plain := []*string{&in.Query, &in.ErrorMessage, &in.SanitizedPrompt}
	structured := []*string{&in.Messages, &in.ResponseJSON, &in.QueryContext, &in.RetrievedContext, &in.Metadata, &in.RedactionSummary, &in.GroupAttributes}
	w := masking{m: m, failed: v.Status != audit.Skipped && v.Personal == nil, found: map[string][]audit.Finding{}}
	w.know(in.Response, audit.Output, v.Findings)
	w.know(in.Prompt, audit.Input, v.Findings)
	w.all(ctx, plain, structured)
	w.knows = true
	var places [2][]Place // of response and prompt
	w.side(&in.Response, audit.Output, v.Findings, &places[0])
	w.side(&in.Prompt, audit.Input, v.Findings, &places[1])
	w.all(ctx, plain, structured)
	switch {
	case w.failed:
		for _, field := range append(plain, &in.Response, &in.Prompt) {
			*field = marked(*field, NotMasked)
		}
		for _, field := range structured {
			*field = marked(*field, `"`+NotMasked+`"`)
		}
	case !w.changed:
		return r
	}
	r.Interaction = &in
	if r.Verdict != nil && len(places[0])+len(places[1]) > 0 {
		v := *r.Verdict
		v.Findings = slices.Clone(v.Findings)
		for i := range v.Findings {
			f := &v.Findings[i]
			if f.Side == audit.Output {
				f.Span = moved(places[0], f.Span)
			} else {
				f.Span = moved(places[1], f.Span)
			}
		}
		audit.SortFindings(v.Findings)
		r.Verdict = &v
	}
	return r
}

func marked(text, marker string) string {
	if text == "" {
		return ""
	}
	return marker
}

// masking is one interaction under way. All of its texts are read before any is masked: what the last one shows to be
// personal is so in the first.
type masking struct {
	m       *Masker
	found   map[string][]audit.Finding // by text
	values  known
	knows   bool // all texts were read
	numbers Numbers
	changed bool
	failed  bool
}

// all reads or masks the fields but response and prompt.
func (w *masking) all(ctx context.Context, plain, structured []*string) {
	for _, field := range plain {
		w.put(field, w.text(ctx, *field))
	}
	for _, field := range structured {
		w.put(field, w.json(ctx, *field))
	}
}

func (w *masking) put(field *string, text string) {
	w.changed = w.changed || text != *field
	*field = text
}

func (w *masking) know(text string, side audit.Side, fs []audit.Finding) {
	w.values.learn(text, side, fs)
	w.numbers.reserve(text)
}

func (w *masking) side(field *string, side audit.Side, fs []audit.Finding, places *[]Place) {
	var text string
	text, *places = w.numbers.replace(*field, side, slices.Concat(fs, w.values.in(*field, side)))
	w.put(field, text)
}

// text reads a text, or masks what is found in it and what any text shows to be personal.
func (w *masking) text(ctx context.Context, text string) string {
	if text == "" {
		return ""
	}
	fs, read := w.found[text]
	if !read {
		v := w.m.find.Analyze(ctx, &audit.Interaction{Response: text})
		w.failed = w.failed || !looked(v)
		fs = v.Findings
		w.found[text] = fs
	}
	if !w.knows {
		w.know(text, audit.Output, fs)
		return text
	}
	return w.numbers.Mask(text, audit.Output, slices.Concat(fs, w.values.in(text, audit.Output)))
}

// json masks the strings of canonical JSON and leaves it canonical.
func (w *masking) json(ctx context.Context, text string) string {
	if text == "" {
		return ""
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber() // as written
	var value any
	if d.Decode(&value) != nil {
		w.failed = true
		return text
	}
	masked, changed := w.value(ctx, value)
	if !changed {
		return text
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	w.failed = w.failed || e.Encode(masked) != nil
	return strings.TrimSuffix(out.String(), "\n")
}

// inner masks a string of JSON. Arguments of tools are JSON in a string: they stay JSON, and escapes
// hide nothing in them.
func (w *masking) inner(ctx context.Context, text string) string {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		var value any
		if d.Decode(&value) == nil && errors.Is(d.Decode(new(any)), io.EOF) {
			w.text(ctx, text) // words beside a value tell what it is, as a name does
			return w.text(ctx, w.json(ctx, text))
		}
	}
	return w.text(ctx, text)
}

func (w *masking) value(ctx context.Context, v any) (out any, changed bool) {
	switch v := v.(type) {
	case string:
		masked := w.inner(ctx, v)
		return masked, masked != v
	case json.Number: // of a card, perhaps
		if len(v) >= shortest {
			masked := w.text(ctx, string(v))
			if masked != string(v) {
				return masked, true
			}
		}
	case []any:
		for i := range v {
			var anew bool
			v[i], anew = w.value(ctx, v[i])
			changed = changed || anew
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) { // numbers do not depend on chance
			var anew bool
			v[name], anew = w.value(ctx, v[name])
			changed = changed || anew
		}
	}
	return v, changed
}

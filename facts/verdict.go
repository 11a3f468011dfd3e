package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// Bias is the verdict of an outside analyzer (seed 003, UpdateLlmInteractionAuditBiasInput).
type Bias struct {
	Detected   Patch[bool]     // while it is not said: whether there are types
	Types      Patch[[]string] // keys of the taxonomy
	Scores     Patch[[]audit.NamedScore]
	Confidence Patch[audit.Score] // kept in millionths; shown with two decimals where the specification says so
	Mitigation Patch[json.RawMessage]
	Report     Patch[json.RawMessage]
}

const (
	maxTypes  = 64
	maxScores = 64
	maxKey    = 64
)

var scoreName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// outside is what an outside analyzer says: nil is not said.
type outside struct {
	detected   *bool
	types      *[]string
	scores     *[]audit.NamedScore
	confidence *audit.Score
	mitigation *json.RawMessage
	report     *json.RawMessage
}

// last is what it said before.
func last(s *store.Said) (o outside) {
	if s == nil {
		return o
	}
	for _, f := range s.Fields {
		switch f {
		case "detected":
			o.detected = &s.Detected
		case "types":
			o.types = &s.BiasTypes
		case "scores":
			o.scores = &s.Scores
		case "confidence":
			o.confidence = &s.Confidence
		case "mitigation":
			o.mitigation = object(s.Outside.Mitigation)
		case "report":
			o.report = object(s.Outside.Report)
		}
	}
	return o
}

// object is a stored JSON object, nil once its text is dropped.
func object(text string) *json.RawMessage {
	if text == "" {
		return nil
	}
	raw := json.RawMessage(text)
	return &raw
}

// patched is what holds after b.
func (o outside) patched(b Bias) outside {
	return outside{
		b.Detected.over(o.detected), b.Types.over(o.types), b.Scores.over(o.scores), b.Confidence.over(o.confidence),
		b.Mitigation.over(o.mitigation), b.Report.over(o.report),
	}
}

// fields names what is said.
func (o outside) fields() []string {
	said := []string{}
	for _, f := range []struct {
		name string
		is   bool
	}{{"detected", o.detected != nil}, {"types", o.types != nil}, {"scores", o.scores != nil}, {"confidence", o.confidence != nil}, {"mitigation", o.mitigation != nil}, {"report", o.report != nil}} {
		if f.is {
			said = append(said, f.name)
		}
	}
	return said
}

// verdict makes the row's verdict; id, analyzer and time are the caller's.
func (o outside) verdict() *audit.Verdict {
	v := &audit.Verdict{Status: audit.Done, Action: audit.NoAction}
	if o.types != nil {
		v.BiasTypes, v.Detected = slices.Sorted(slices.Values(*o.types)), len(*o.types) > 0
	}
	if o.detected != nil {
		v.Detected = *o.detected
	}
	if o.scores != nil {
		v.Scores = *o.scores
	}
	if o.confidence != nil {
		v.Confidence = *o.confidence
	}
	if o.mitigation != nil {
		v.Mitigation = mitigationType(*o.mitigation)
	}
	return v
}

// mitigationType is the object's type where it is one of ours; another one is words of the caller and stays
// with the texts.
func mitigationType(raw json.RawMessage) string {
	var o struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &o) != nil || !slices.Contains(audit.Mitigations, o.Type) {
		return ""
	}
	return o.Type
}

func (o outside) texts() (texts []clickhouse.FactText) {
	if o.mitigation != nil {
		texts = append(texts, clickhouse.FactText{Kind: clickhouse.KindMitigation, Text: string(*o.mitigation)})
	}
	if o.report != nil {
		texts = append(texts, clickhouse.FactText{Kind: clickhouse.KindReport, Text: string(*o.report)})
	}
	return texts
}

// UpdateBias adds the verdict of an outside analyzer, whose name is the caller's subject: it stands beside
// ours and those of other callers. The stream's message bears the interaction's trace. ErrNotFound of
// package store when the tenant has no such interaction.
func (w *Writer) UpdateBias(ctx context.Context, by *auth.Principal, id audit.ID, b Bias) (out *store.Item, err error) {
	const op = "facts: update bias"
	defer func() { w.counted(kindVerdict, err) }()
	t, it, err := w.begin(ctx, op, by, id)
	if err != nil {
		return nil, err
	}
	if b, err = w.checked(ctx, op, b); err != nil {
		return nil, err
	}
	var with []string
	if b.Mitigation.value() {
		with = append(with, "mitigationAction")
	}
	if b.Report.value() {
		with = append(with, "biasReportSummary")
	}
	if err := w.textsKept(ctx, it, with...); err != nil {
		return nil, err
	}
	var v *audit.Verdict
	key := callerKey{it.Key(), by.Subject}
	_, err = w.saying.alone(key, func() (none said, err error) {
		analyzer := audit.ExternalAnalyzer(by.Subject)
		before, err := t.Said(ctx, it, analyzer)
		if err != nil {
			return none, err
		}
		now := last(before).patched(b)
		v = now.verdict()
		v.Analyzer, v.Source, v.Time = analyzer, by.Subject, w.now(timeOf(before))
		v.ResultID = audit.NewID(v.Time)
		r := audit.Record{Origin: it.Origin, Verdict: v, Interaction: &audit.Interaction{ID: it.EventID, Tenant: it.Tenant, Time: it.Time, Digest: it.Digest}}
		return none, stored(ctx, func(ctx context.Context) error { return w.Rows.OutsideVerdict(ctx, r, now.fields(), now.texts()) })
	})
	if err != nil {
		return nil, err
	}
	w.tell(ctx, t, it, v)
	now := w.show(ctx, kindVerdict, t, it, func(it *store.Item) { merge(it, v) })
	w.publishVerdict(ctx, t, it, v, now.event)
	return now.item, nil
}

// merge adds a verdict to an item that the store could not give again.
func merge(it *store.Item, v *audit.Verdict) {
	if v.Detected && (!it.BiasDetected || it.MaxSeverity == 0) {
		it.Confidence = max(it.Confidence, v.Confidence)
	}
	it.BiasDetected = it.BiasDetected || v.Detected
	types := slices.Concat(it.BiasTypes, v.BiasTypes)
	slices.Sort(types)
	it.BiasTypes = slices.Compact(types)
}

// checked refuses what is wrong, all faults at once, and gives the input in its canonical form.
func (w *Writer) checked(ctx context.Context, op string, b Bias) (Bias, error) {
	if !b.Detected.Given && !b.Types.Given && !b.Scores.Given && !b.Confidence.Given && !b.Mitigation.Given && !b.Report.Given {
		return b, audit.E(op, audit.KindInvalid, errors.New("input: says nothing; give biasDetected, biasType, biasScore, biasConfidenceScore, mitigationAction or biasReportSummary"))
	}
	var errs []error
	if b.Types.value() {
		types, faults, err := w.words.keysOf(ctx, "biasType", *b.Types.Value, maxTypes)
		if err != nil {
			return b, err
		}
		b.Types.Value, errs = &types, append(errs, faults...)
	}
	if b.Scores.value() {
		scores, faults := scoresOf(*b.Scores.Value)
		b.Scores.Value, errs = &scores, append(errs, faults...)
	}
	if c := b.Confidence.Value; b.Confidence.value() && (*c < 0 || *c > audit.One) {
		errs = append(errs, fmt.Errorf("biasConfidenceScore: %v is not in 0..1", *c))
	}
	for _, o := range []struct {
		field string
		patch *Patch[json.RawMessage]
	}{{"mitigationAction", &b.Mitigation}, {"biasReportSummary", &b.Report}} {
		if !o.patch.value() {
			continue
		}
		if strings.TrimSpace(string(*o.patch.Value)) == "null" {
			o.patch.Value = nil
			continue
		}
		raw, err := canonical(o.field, *o.patch.Value)
		if err != nil {
			errs = append(errs, err)
		}
		o.patch.Value = &raw
	}
	return b, audit.E(op, audit.KindInvalid, errors.Join(errs...))
}

// scoresOf checks scores and orders them by name.
func scoresOf(in []audit.NamedScore) (out []audit.NamedScore, errs []error) {
	if len(in) > maxScores {
		return nil, []error{fmt.Errorf("biasScore: holds %d scores; %d at most", len(in), maxScores)}
	}
	out = slices.Clone(in)
	slices.SortStableFunc(out, func(a, b audit.NamedScore) int { return strings.Compare(a.Name, b.Name) })
	for i, s := range out {
		switch {
		case !scoreName.MatchString(s.Name):
			errs = append(errs, errors.New("biasScore: a name is not 1 to 64 of a-z, 0-9 and _.-"))
		case i > 0 && out[i-1].Name == s.Name:
			errs = append(errs, fmt.Errorf("biasScore.%s: stands twice", s.Name))
		case s.Value < 0 || s.Value > audit.One:
			errs = append(errs, fmt.Errorf("biasScore.%s: %v is not in 0..1", s.Name, s.Value))
		}
	}
	return out, errs
}

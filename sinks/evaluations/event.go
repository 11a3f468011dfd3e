package evaluations

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/log"
	"go.opentelemetry.io/otel/trace"

	"github.com/evenhand/evenhand/audit"
)

// EventName is the event's name in the convention.
const EventName = "gen_ai.evaluation.result"

// Names of evaluations.
const (
	Bias   = "evenhand.bias"   // score: the sum over findings in the response, at most 1
	Safety = "evenhand.safety" // the same of the safety categories
	Gate   = "evenhand.gate"   // an action that a person must approve; without a score

	JudgeBias      = "evenhand.judge.bias"
	JudgeDEI       = "evenhand.judge.dei" // of its score more is better
	JudgeOffensive = "evenhand.judge.offensive"
)

// Labels. Those of the judge's evaluations say what its verdict says of the whole response.
const (
	Pass     = "pass"     // nothing was found; the judge: compliant
	Detected = "detected" // something, below the threshold; the judge: a person should look
	Over     = "flagged"  // the threshold was passed, a gate rule matched, an outside analyzer says that there is bias; the judge: non-compliant
)

const (
	maxRules = 20  // of an explanation; the others are counted
	maxID    = 128 // characters of a response's id
)

// Records tells of verdicts that are stored. It does not keep them and does not wait.
func (s *Sender) Records(rs []audit.Record) {
	if s == nil {
		return
	}
	for i := range rs {
		s.Record(&rs[i])
	}
}

// Record tells of one verdict. Of the interaction it needs ids, trace and, for the response's id, metadata.
func (s *Sender) Record(r *audit.Record) {
	if s == nil || r.Verdict == nil || r.Verdict.Status == audit.Skipped || !s.all && !over(r.Verdict) {
		return
	}
	at, ok := parent(r.Interaction)
	if !ok {
		return
	}
	ctx := trace.ContextWithSpanContext(context.Background(), at)
	common := about(r)
	for _, e := range evaluated(r.Verdict) {
		if s.all || e.label == Over {
			s.logger.Emit(ctx, e.record(r.Verdict, common))
		}
	}
}

// over tells whether anything of the verdict has the label flagged.
func over(v *audit.Verdict) bool {
	return v.Flagged || v.Unsafe || v.Gated || v.Detected && external(v)
}

func external(v *audit.Verdict) bool {
	return strings.HasPrefix(v.Analyzer, audit.ExternalAnalyzer(""))
}

// parent is the span that was evaluated; without its id the trace alone.
func parent(in *audit.Interaction) (trace.SpanContext, bool) {
	tid, err := trace.TraceIDFromHex(in.TraceID)
	if err != nil {
		return trace.SpanContext{}, false
	}
	sid, _ := trace.SpanIDFromHex(in.SpanID)
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid, Remote: true}), true
}

// evaluation is one event to be.
type evaluation struct {
	name, label string   // label "" when nobody could look
	score       *float64 // nil where there is none
	why         string   // rules
}

// evaluated splits a verdict.
func evaluated(v *audit.Verdict) []evaluation {
	if v.Analyzer == audit.JudgeAnalyzer {
		return judged(v)
	}
	if v.Status == audit.Failed || v.Status == audit.Abandoned && len(v.Findings) == 0 {
		return []evaluation{{name: Bias}}
	}
	if external(v) {
		e := evaluation{name: Bias, label: Pass, why: list(v.BiasTypes)}
		if v.Detected {
			e.label = Over
		}
		e.score = named(v, audit.ScoreBias)
		return []evaluation{e}
	}
	out := []evaluation{
		{Bias, label(v.Flagged, v.Detected), decimal(v.BiasSum), rules(v, func(kind string) bool { return slices.Contains(v.BiasTypes, kind) })},
		{Safety, label(v.Unsafe, v.SafetySum > 0), decimal(v.SafetySum), rules(v, family("safety."))},
	}
	if v.Status != audit.Done { // some did not look: what they might have found is no pass
		for i := range out {
			if out[i].label == Pass {
				out[i].label, out[i].score = "", nil
			}
		}
	}
	if v.Gated {
		out = append(out, evaluation{name: Gate, label: Over, why: rules(v, family("gate."))})
	}
	return out
}

// judged splits a verdict of the judge: one evaluation of each of its scores. What it says of the response is the label of what it found
// something of; of all three where it names nothing. The rules' were told with their own verdict.
func judged(v *audit.Verdict) (out []evaluation) {
	if v.Status != audit.Done {
		return []evaluation{{name: JudgeBias}}
	}
	said := label(v.Flagged, v.Mitigation == audit.MitigationReview)
	for _, e := range [...]struct{ name, score, kinds string }{
		{JudgeBias, audit.ScoreJudge, "judge."}, {JudgeDEI, audit.ScoreDEI, "dei."}, {JudgeOffensive, audit.ScoreOffensive, "offensive."},
	} {
		if s := named(v, e.score); s != nil {
			label, why := said, rules(v, family(e.kinds))
			if why == "" && len(v.Findings) > 0 {
				label = Pass
			}
			out = append(out, evaluation{e.name, label, s, why})
		}
	}
	return out
}

// named gives a score by its name, nil where the verdict has none.
func named(v *audit.Verdict, name string) *float64 {
	i := slices.IndexFunc(v.Scores, func(s audit.NamedScore) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return decimal(v.Scores[i].Value)
}

func label(over, found bool) string {
	switch {
	case over:
		return Over
	case found:
		return Detected
	}
	return Pass
}

func decimal(s audit.Score) *float64 {
	f := s.Capped().Float()
	return &f
}

func family(prefix string) func(string) bool {
	return func(kind string) bool { return strings.HasPrefix(kind, prefix) }
}

// rules names the rules that found something of a kind in the response.
func rules(v *audit.Verdict, of func(kind string) bool) string {
	var ids []string
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Side == audit.Output && of(f.Kind) {
			ids = append(ids, f.Rule)
		}
	}
	slices.Sort(ids)
	return list(slices.Compact(ids))
}

func list(names []string) string {
	if more := len(names) - maxRules; more > 0 {
		return strings.Join(names[:maxRules], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, ", ")
}

// record makes the event.
func (e *evaluation) record(v *audit.Verdict, common []attribute.KeyValue) (r log.Record) {
	r.SetEventName(EventName)
	r.SetTimestamp(v.Time)
	r.SetSeverity(log.SeverityInfo)
	if e.label == Over {
		r.SetSeverity(log.SeverityWarn)
	}
	r.AddAttributes(attribute.String("gen_ai.evaluation.name", e.name))
	if e.score != nil {
		r.AddAttributes(attribute.Float64("gen_ai.evaluation.score.value", *e.score))
	}
	if e.label != "" {
		r.AddAttributes(attribute.String("gen_ai.evaluation.score.label", e.label))
	}
	if e.why != "" {
		r.AddAttributes(attribute.String("gen_ai.evaluation.explanation", e.why))
	}
	r.AddAttributes(common...)
	return r
}

// about are the attributes that all events of a verdict share.
func about(r *audit.Record) []attribute.KeyValue {
	in, v := r.Interaction, r.Verdict
	analyzer, _, _ := strings.Cut(v.Analyzer, ":") // who it is behind the colon may be a person
	out := []attribute.KeyValue{
		attribute.String("evenhand.audit_id", in.ID.String()),
		attribute.String("evenhand.result_id", v.ResultID.String()),
		attribute.String("evenhand.tenant", in.Tenant),
		attribute.String("evenhand.analyzer", analyzer),
		attribute.String("evenhand.status", string(v.Status)),
		attribute.String("evenhand.action", string(v.Action)),
	}
	if len(v.BiasTypes) > 0 {
		out = append(out, attribute.StringSlice("evenhand.bias_type", v.BiasTypes))
	}
	if id := responseID(in.Metadata); id != "" {
		out = append(out, attribute.String("gen_ai.response.id", id))
	}
	if v.Status != audit.Done && v.Reason != "" {
		out = append(out, attribute.String("error.type", v.Reason))
	}
	return out
}

// responseID finds the id that the provider gave the response, where the decoders of OpenTelemetry and the gateway
// leave it. Metadata is the caller's, so what does not look like an id is not one.
func responseID(metadata string) string {
	if metadata == "" {
		return ""
	}
	for _, path := range []string{`gen_ai\.response\.id`, "gateway.response_id"} {
		if id := gjson.Get(metadata, path); id.Type == gjson.String && len(id.Str) <= maxID && !strings.ContainsFunc(id.Str, notOfID) {
			return id.Str
		}
	}
	return ""
}

func notOfID(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' && c != '.'
}

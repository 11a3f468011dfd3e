package door

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/sources"
)

// analyzeFields are the names of seed 003 §4.3.2 and trace_id (§4.4.6).
var analyzeFields = []string{"llm_response", "original_query", "query_context", "user_id", "tenant_id", "llm_model", "trace_id"}

// biasReport is the answer of seed 003 §4.3.2.
type biasReport struct {
	Detected   bool                   `json:"bias_detected"`
	Types      []string               `json:"bias_type"`
	Scores     map[string]audit.Score `json:"bias_score"` // at most 1 each
	Confidence audit.Score            `json:"confidence"`
	Mitigation *mitigation            `json:"mitigation_action"`
	Summary    summary                `json:"bias_report_summary"`
}

type mitigation struct {
	Type    string `json:"type"`
	Details string `json:"details"`
}

// summary is the detailed analysis. Sums are as they were compared with the threshold: they may pass 1.
type summary struct {
	Status    audit.Status `json:"status"` // done, partial, or skipped for an empty text, which is not "clean"
	Reason    string       `json:"reason,omitempty"`
	FailedBy  []string     `json:"failed_by,omitempty"`
	Analyzer  string       `json:"analyzer"`
	RuleSet   string       `json:"rule_set"`
	Domain    audit.Domain `json:"domain"`
	Given     string       `json:"domain_given,omitempty"` // an unknown domain, scored as general
	BiasSum   audit.Score  `json:"bias_sum"`
	SafetySum audit.Score  `json:"safety_sum"`
	Threshold audit.Score  `json:"threshold"`
	Flagged   bool         `json:"flagged"` // bias_sum > threshold
	Unsafe    bool         `json:"unsafe"`
	Gated     bool         `json:"gated"`
	Action    audit.Action `json:"action"`
	Findings  []finding    `json:"findings"`
	TraceID   string       `json:"trace_id"`
	Duration  float64      `json:"duration_ms"`
}

type finding struct {
	Rule           string         `json:"rule"`
	Version        string         `json:"rule_version"`
	Kind           string         `json:"kind"`
	Characteristic audit.Ground   `json:"characteristic,omitempty"`
	Severity       audit.Severity `json:"severity,omitempty"`
	Score          audit.Score    `json:"score"`
	Confidence     audit.Score    `json:"confidence"`
	Side           audit.Side     `json:"side"`
	Span           audit.Span     `json:"span"`
	Evidence       string         `json:"evidence"`
}

// analyzeBias judges one text and keeps nothing.
func (s *server) analyzeBias(w http.ResponseWriter, r *http.Request, body []byte) *fault {
	in, f := s.analyzed(r, body)
	if f != nil {
		return f
	}
	v := s.verdict(r.Context(), in)
	if v == nil || v.Status == audit.Failed {
		return reply.NewFault(http.StatusInternalServerError, CodeAnalysisFailed, "the analysis failed; the interaction itself is not at fault, so go on without a report", nil)
	}
	reply.JSON(w, http.StatusOK, report(in, v, s.Advice))
	return nil
}

// verdict turns a panic of the analysis into no verdict.
func (s *server) verdict(ctx context.Context, in *audit.Interaction) (v *audit.Verdict) {
	defer func() {
		if p := recover(); p != nil {
			s.Logger.Error("analysis panicked", "type", fmt.Sprintf("%T", p))
			v = nil
		}
	}()
	return s.Analyze(ctx, in)
}

// analyzed reads the request as an interaction that has an id of its own and no place in the log.
func (s *server) analyzed(r *http.Request, body []byte) (*audit.Interaction, *fault) {
	tenant, f := tenant(r)
	if f != nil {
		return nil, f
	}
	now := s.Now().UTC()
	rec := sources.Record{Time: now, Value: body, Headers: []audit.Header{
		{Key: ingest.HeaderEventID, Value: []byte(audit.NewID(now).String())},
		{Key: ingest.HeaderTenant, Value: []byte(tenant)},
		{Key: ingest.HeaderTraceparent, Value: []byte(r.Header.Get("Traceparent"))},
	}}
	in, faults := s.Decoder.Check(rec, audit.Origin{BrokerTime: now}, analyzeFields...)
	var domain audit.Domain
	for name := range r.URL.Query() {
		if name != "domain" {
			faults = append(faults, ingest.Fault{Field: "?" + ingest.Shown(name), Code: ingest.UnknownField, Message: "is not known; there is ?domain"})
		}
	}
	if d := r.URL.Query().Get("domain"); d != "" {
		if domain = audit.Domain(strings.ToLower(d)); !domain.Known() {
			faults = append(faults, ingest.Fault{Field: "?domain", Code: ingest.BadValue, Message: fmt.Sprintf("wants one of %s", audit.List(audit.Domains))})
		}
	}
	if !hasValue(body, "llm_response") && !unreadable(faults) {
		faults = append(faults, ingest.Fault{Field: "llm_response", Code: ingest.MissingField, Message: "is missing; it wants the text that the model answered"})
	}
	if len(faults) > 0 {
		return nil, refusal(faults)
	}
	placed := *in
	if domain != "" {
		placed.Domain = domain
	} else if d := contextDomain(in.QueryContext); d.Known() {
		placed.Domain = d
	} else {
		placed.DomainGiven = string(d)
	}
	return &placed, nil
}

// unreadable tells that the body could not be read as an object at all.
func unreadable(faults []ingest.Fault) bool { return len(faults) > 0 && faults[0].Field == "" }

func hasValue(body []byte, name string) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return true // said by the decoder
	}
	v, ok := fields[name]
	return ok && string(v) != "null"
}

// refusal classes the faults of a request: another tenant's id is 403, a long body 413.
func refusal(faults []ingest.Fault) *fault {
	f := badRequest(faults...)
	for _, each := range faults {
		switch each.Code {
		case ingest.TenantMismatch:
			f.Status, f.Code, f.Message = http.StatusForbidden, reply.Forbidden, "the tenant is not yours"
			return f
		case ingest.TooLarge:
			f.Status, f.Code, f.Message = http.StatusRequestEntityTooLarge, reply.TooLarge, "the request is too large: see details"
		}
	}
	return f
}

// contextDomain gives query_context.domain when it is a string.
func contextDomain(queryContext string) audit.Domain {
	var c struct {
		Domain any `json:"domain"`
	}
	_ = json.Unmarshal([]byte(queryContext), &c) // canonical JSON of ours, or ""
	d, _ := c.Domain.(string)
	return audit.Domain(strings.ToLower(d))
}

func report(in *audit.Interaction, v *audit.Verdict, adviceOf func(rule string) audit.Advice) biasReport {
	out := biasReport{
		Detected: v.Detected, Types: append([]string{}, v.BiasTypes...), Scores: make(map[string]audit.Score, len(v.Scores)), Confidence: v.Confidence,
		Summary: summary{
			Status: v.Status, Reason: v.Reason, FailedBy: v.FailedBy, Analyzer: v.Analyzer, RuleSet: v.RuleSet, Domain: in.Domain, Given: in.DomainGiven,
			BiasSum: v.BiasSum, SafetySum: v.SafetySum, Threshold: v.Threshold, Flagged: v.Flagged, Unsafe: v.Unsafe, Gated: v.Gated, Action: v.Action,
			Findings: make([]finding, 0, len(v.Findings)), TraceID: in.TraceID, Duration: float64(v.Duration.Microseconds()) / 1000,
		},
	}
	for _, s := range v.Scores {
		out.Scores[s.Name] = s.Value.Capped()
	}
	var advice []audit.Advice
	texts := in.Evidence()
	for _, f := range v.Findings {
		if f.Side == audit.Output && adviceOf != nil {
			advice = append(advice, adviceOf(f.Rule))
		}
		out.Summary.Findings = append(out.Summary.Findings, finding{
			Rule: f.Rule, Version: f.RuleVersion, Kind: f.Kind, Characteristic: f.Ground, Severity: f.Severity, Score: f.Score,
			Confidence: f.Confidence, Side: f.Side, Span: f.Span, Evidence: texts.At(f.Side, f.Span),
		})
	}
	if v.Mitigation != "" {
		out.Mitigation = &mitigation{v.Mitigation, audit.MitigationDetails(v.Mitigation, advice...)}
	}
	return out
}

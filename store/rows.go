package store

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

var (
	factColumns    = strings.Join(columnsOf[factRow](), ", ")
	verdictColumns = strings.Join(columnsOf[verdictRow](), ", ")
)

// factRow is a row of interactions as the client scans it.
type factRow struct {
	TenantID              string    `ch:"tenant_id"`
	EventID               uuid.UUID `ch:"event_id"`
	ContentDigest         string    `ch:"content_digest"`
	GivenID               string    `ch:"given_id"`
	IDAssumed             uint8     `ch:"id_assumed"`
	EventTS               time.Time `ch:"event_ts"`
	TimeAssumed           uint8     `ch:"time_assumed"`
	TimeSuspect           uint8     `ch:"time_suspect"`
	TraceID               string    `ch:"trace_id"`
	SpanID                string    `ch:"span_id"`
	Conversation          string    `ch:"conversation"`
	DecisionID            string    `ch:"decision_id"`
	App                   string    `ch:"app"`
	Domain                string    `ch:"domain"`
	DomainGiven           string    `ch:"domain_given"`
	Provider              string    `ch:"provider"`
	Model                 string    `ch:"model"`
	TemplateID            string    `ch:"template_id"`
	TemplateVersion       string    `ch:"template_version"`
	PromptTokens          int32     `ch:"prompt_tokens"`
	ResponseTokens        int32     `ch:"response_tokens"`
	LatencyMS             int32     `ch:"latency_ms"`
	CostMicroUSD          int64     `ch:"cost_micro_usd"`
	SensitivityScore      string    `ch:"sensitivity_score"`
	ContainedPII          int8      `ch:"contained_pii"`
	ContainedProprietary  int8      `ch:"contained_proprietary"`
	ContainedCustomerData int8      `ch:"contained_customer_data"`
	Status                string    `ch:"status"`
	Incomplete            uint8     `ch:"incomplete"`
	WithoutContent        uint8     `ch:"without_content"`
	PromptChars           uint32    `ch:"prompt_chars"`
	ResponseChars         uint32    `ch:"response_chars"`
	Truncated             uint8     `ch:"truncated"`
}

func (r *factRow) interaction() audit.Interaction {
	return audit.Interaction{
		ID: audit.ID(r.EventID), GivenID: r.GivenID, IDAssumed: r.IDAssumed == 1, Tenant: r.TenantID,
		Time: r.EventTS, TimeAssumed: r.TimeAssumed == 1, TimeSuspect: r.TimeSuspect == 1,
		TraceID: r.TraceID, SpanID: r.SpanID, Conversation: r.Conversation, Application: r.App,
		Domain: audit.Domain(r.Domain), DomainGiven: r.DomainGiven, DecisionID: r.DecisionID,
		Provider: r.Provider, Model: r.Model, TemplateID: r.TemplateID, TemplateVersion: r.TemplateVersion,
		PromptTokens: r.PromptTokens, ResponseTokens: r.ResponseTokens, LatencyMS: r.LatencyMS, CostMicroUSD: r.CostMicroUSD,
		SensitivityScore: r.SensitivityScore, ContainedPII: audit.Tristate(r.ContainedPII),
		ContainedProprietary: audit.Tristate(r.ContainedProprietary), ContainedCustomerData: audit.Tristate(r.ContainedCustomerData),
		Status: r.Status, Incomplete: r.Incomplete == 1, WithoutContent: r.WithoutContent == 1,
		PromptChars: r.PromptChars, ResponseChars: r.ResponseChars, Truncated: r.Truncated == 1,
		Digest: digest(r.ContentDigest),
	}
}

// verdictRow is a row of verdicts as the client scans it.
type verdictRow struct {
	Analyzer      string    `ch:"analyzer"`
	ResultID      uuid.UUID `ch:"result_id"`
	ContentDigest string    `ch:"content_digest"`
	RuleSet       string    `ch:"rule_set"`
	Status        string    `ch:"status"`
	Reason        string    `ch:"reason"`
	FailedBy      []string  `ch:"failed_by"`
	BiasDetected  uint8     `ch:"bias_detected"`
	BiasTypes     []string  `ch:"bias_types"`
	BiasSum       int64     `ch:"bias_sum"`
	SafetySum     int64     `ch:"safety_sum"`
	Threshold     int64     `ch:"threshold"`
	Flagged       uint8     `ch:"flagged"`
	Unsafe        uint8     `ch:"unsafe"`
	Gated         uint8     `ch:"gated"`
	Action        string    `ch:"action"`
	Confidence    int32     `ch:"confidence"`
	MaxSeverity   uint8     `ch:"max_severity"`
	Mitigation    string    `ch:"mitigation"`
	Kinds         []string  `ch:"findings.kind"`
	Rules         []string  `ch:"findings.rule"`
	RuleVersions  []string  `ch:"findings.rule_version"`
	Grounds       []string  `ch:"findings.ground"`
	Severities    []uint8   `ch:"findings.severity"`
	Scores        []int64   `ch:"findings.score"`
	Confidences   []int32   `ch:"findings.confidence"`
	Sides         []string  `ch:"findings.side"`
	Starts        []uint32  `ch:"findings.start"`
	Ends          []uint32  `ch:"findings.end"`
	Abusive       []uint8   `ch:"findings.abusive"`
	Entities      []string  `ch:"findings.entity"`
	ScoreNames    []string  `ch:"scores.name"`
	ScoreValues   []int64   `ch:"scores.value"`
	AnalysisTS    time.Time `ch:"analysis_ts"`
	DurationUS    uint32    `ch:"duration_us"`
}

func (r *verdictRow) verdict() audit.Verdict {
	v := audit.Verdict{
		ResultID: audit.ID(r.ResultID), Analyzer: r.Analyzer, RuleSet: r.RuleSet, Status: audit.Status(r.Status),
		Reason: r.Reason, FailedBy: r.FailedBy, Detected: r.BiasDetected == 1, BiasTypes: r.BiasTypes,
		BiasSum: audit.Score(r.BiasSum), SafetySum: audit.Score(r.SafetySum), Threshold: audit.Score(r.Threshold),
		Flagged: r.Flagged == 1, Unsafe: r.Unsafe == 1, Gated: r.Gated == 1, Action: audit.Action(r.Action),
		Confidence: audit.Score(r.Confidence), MaxSeverity: r.MaxSeverity, Mitigation: r.Mitigation,
		Time: r.AnalysisTS, Duration: duration(r.DurationUS),
	}
	for i := range r.Kinds {
		v.Findings = append(v.Findings, audit.Finding{
			Kind: r.Kinds[i], Rule: r.Rules[i], RuleVersion: r.RuleVersions[i], Ground: audit.Ground(r.Grounds[i]),
			Severity: severity(r.Severities[i]), Score: audit.Score(r.Scores[i]), Confidence: audit.Score(r.Confidences[i]),
			Side: audit.Side(r.Sides[i]), Span: audit.Span{Start: r.Starts[i], End: r.Ends[i]},
			Abusive: r.Abusive[i] == 1, Entity: r.Entities[i],
		})
	}
	for i := range r.ScoreNames {
		v.Scores = append(v.Scores, audit.NamedScore{Name: r.ScoreNames[i], Value: audit.Score(r.ScoreValues[i])})
	}
	return v
}

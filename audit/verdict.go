package audit

import (
	"strconv"
	"time"
)

// Status of an analysis (our field biasAnalysisStatus).
type Status string

// The values stored. A hot-path verdict is done, partial, failed or skipped.
const (
	Pending   Status = "pending"
	Done      Status = "done"
	Partial   Status = "partial" // some detectors failed, their findings are missing
	Failed    Status = "failed"  // could not look; retried by cron
	Skipped   Status = "skipped" // no response to judge, never counted as clean
	Abandoned Status = "abandoned"
)

// Action is what a policy asks for when its threshold is passed.
type Action string

// The actions, weakest first. The audit path records them and enforces nothing.
const (
	NoAction Action = "none"
	Log      Action = "log"
	Warn     Action = "warn"
	Gate     Action = "gate" // a human must approve
	Block    Action = "block"
)

// OtherLanguage is the reason of a verdict that is done, of a response in a language that the detectors have not learnt: what stands in
// every language (numbers, addresses) was looked for, bias and harm go unseen.
const OtherLanguage = "language"

// HotAnalyzer names the analyzer of the hot path in verdict rows.
const HotAnalyzer = "hot"

// NamedScore is one entry of bias_score.
type NamedScore struct {
	Name  string
	Value Score
}

// Verdict is the result of one analysis of one interaction. It holds no text but Personal's masked prompt.
type Verdict struct {
	ResultID  ID
	Analyzer  string // HotAnalyzer, ExternalAnalyzer, later judge, encoder
	Source    string // of an outside analyzer: who sent it
	Attempt   int    // of a retry, from 1; 0 on the hot path
	RuleSet   string // version of all rules together
	Status    Status
	Reason    string   // code for failed, partial, skipped: "panic", "timeout", "error", "no_content", "no_response"; of done: "" or [OtherLanguage]
	FailedBy  []string // ids of the detectors that failed
	Findings  []Finding
	Detected  bool     // any finding of bias in the response, of a rule or learned
	BiasTypes []string // kinds of those findings, sorted, without repeats

	BiasSum   Score // Σ over charter findings of the response; may pass 1
	SafetySum Score // Σ over safety findings of the response; may pass 1
	Threshold Score // of the domain profile or the override
	Flagged   bool  // BiasSum > Threshold
	Unsafe    bool  // SafetySum > the safety threshold
	Gated     bool  // a gate rule matched the response
	Action    Action

	Confidence  Score  // of the strongest bias finding; 0 when none
	MaxSeverity uint8  // Level of the most severe finding of the response
	Mitigation  string // suggested mitigation type, "" when none: see Mitigations
	Scores      []NamedScore
	Grades      []NamedScore // how sure learned detectors are, found or not, where the analyzer was asked for that; not stored
	Personal    *Personal    // nil: nobody looked for personal data, or could not

	Time     time.Time     // of the analysis, UTC
	Duration time.Duration // of all detectors together
}

// Score gives the named score, 0 when the verdict does not hold it.
func (v *Verdict) Score(name string) Score {
	for _, s := range v.Scores {
		if s.Name == name {
			return s.Value
		}
	}
	return 0
}

// Names of the scores that every hot verdict carries in Verdict.Scores when they are not zero.
const (
	ScoreBias          = "bias"
	ScoreSafety        = "safety"
	ScoreToxicity      = "toxicity"
	ScorePII           = "pii"
	ScoreHallucination = "hallucination"
	ScoreTerms         = "terms" // seed 002: 1 − 0.15 per term; absent means 1.0, a pass
	// ScoreClassifier is the probability of the strongest learned finding of bias; those of other kinds
	// have the kind behind a dot. It enters no sum.
	ScoreClassifier = "classifier"
)

// Record is an interaction with its verdict and its place in the log: what a sink stores.
type Record struct {
	Origin      Origin
	Interaction *Interaction
	Verdict     *Verdict
}

// Rejected is a message that could not become an interaction, or a request to the judge.
type Rejected struct {
	Origin Origin
	Tenant string // as far as known, else ""
	Reason string // code: see package ingest
	Detail string // what is wrong and where, without any of the message's text
	Key    []byte
	Value  []byte
	Header []Header
}

// Header is one header of a log record.
type Header struct {
	Key   string
	Value []byte
}

// StreamEvent is one message of bias.audit.stream (seed 003 §4.4.5).
type StreamEvent struct {
	AuditID    ID
	Tenant     string
	Detected   bool
	Scores     []NamedScore // values are capped at 1
	BiasTypes  []string
	Confidence Score
	Time       time.Time
	TraceID    string
	ResultID   ID // header result_id
}

// Event makes the stream's message of a record.
func (r *Record) Event() StreamEvent {
	v := r.Verdict
	return StreamEvent{
		AuditID: r.Interaction.ID, Tenant: r.Interaction.Tenant, Detected: v.Detected, Scores: v.Scores,
		BiasTypes: v.BiasTypes, Confidence: v.Confidence, Time: v.Time, TraceID: r.Interaction.TraceID, ResultID: v.ResultID,
	}
}

// HotResultID is the id of the hot path's verdict on one delivery content of one event.
func HotResultID(tenant string, event ID, digest [32]byte) ID {
	return DeriveID(tenant, string(event[:]), string(digest[:]), HotAnalyzer)
}

// RetryResultID is the id of the verdict of one attempt to analyse stored content again. It depends on
// the attempt alone, so two processes that make the same attempt write one row.
func RetryResultID(tenant string, event ID, digest [32]byte, attempt int) ID {
	return DeriveID(tenant, string(event[:]), string(digest[:]), HotAnalyzer, "retry", strconv.Itoa(attempt))
}

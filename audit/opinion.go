package audit

import "time"

// ExternalAnalyzer is the analyzer of verdicts that an outside caller sends: a name of its own for each, so
// that several stand side by side and the newest of each is current.
func ExternalAnalyzer(subject string) string { return "external:" + subject }

// Kinds of an Opinion.
const (
	OpinionReview   = "review"
	OpinionFeedback = "feedback"
)

// Opinion is what a person said about an interaction, a message of evenhand.feedback: what rules are
// refined by. It holds no words and not who it was.
type Opinion struct {
	ID          ID               `json:"id"`   // of the review or feedback: the same when it is sent again
	Kind        string           `json:"kind"` // OpinionReview or OpinionFeedback
	Interaction ID               `json:"audit_id"`
	Tenant      string           `json:"tenant_id"`
	Domain      Domain           `json:"domain"`
	RuleSet     string           `json:"rule_set"`
	Decision    string           `json:"decision,omitempty"` // of a review: confirmed, dismissed, unsure, withdrawn
	Tags        []string         `json:"tags,omitempty"`     // of a review: keys of the taxonomy
	Helped      *bool            `json:"helped,omitempty"`   // of feedback: absent when not known
	Findings    []OpinionFinding `json:"findings"`           // of the verdicts that were current when it was sent
	Time        time.Time        `json:"timestamp"`
	TraceID     string           `json:"trace_id"`
}

// OpinionFinding is a rule that fired in the interaction.
type OpinionFinding struct {
	Kind        string `json:"kind"`
	Rule        string `json:"rule"`
	RuleVersion string `json:"rule_version"`
	Side        Side   `json:"side"`
}

package audit

import (
	"slices"
	"strings"
)

// Types of suggested mitigation (mitigation_action.type).
const (
	MitigationReplace        = "REPLACE_TERM"    // the rule names the wording: see Advice
	MitigationRephrasePrompt = "REPHRASE_PROMPT" // the prompt, not one word, brings it about
	MitigationReview         = "HUMAN_REVIEW"
	MitigationRephrase       = "REPHRASE_RESPONSE"
	MitigationRedact         = "REDACT_PII"
	MitigationApprove        = "HUMAN_APPROVAL"
	MitigationBlock          = "BLOCK_RESPONSE"
)

// Mitigations lists the types, weakest first. Of several findings or analyzers the strongest is suggested.
var Mitigations = []string{
	MitigationReplace, MitigationRephrasePrompt, MitigationReview, MitigationRephrase, MitigationRedact, MitigationApprove, MitigationBlock,
}

// StrongerMitigation gives the stronger of two types; "" is none.
func StrongerMitigation(a, b string) string {
	if slices.Index(Mitigations, b) > slices.Index(Mitigations, a) {
		return b
	}
	return a
}

// Advice is what a rule suggests against what it finds. Its words are the rule's, never an interaction's, so it may be
// shown to whoever may see the rule's id.
type Advice struct {
	Type    string // "" when the rule leaves it to the policy
	Term    string // what to replace, "" when Replace says it all
	Replace string // wording to use instead, "" when there is none
}

var mitigationDetails = map[string]string{
	MitigationReplace:        "Some terms should be replaced",
	MitigationRephrasePrompt: "The prompt should be rephrased so that groups are described alike",
	MitigationReview:         "A person should look at the response",
	MitigationRephrase:       "The response should be rephrased without the findings",
	MitigationRedact:         "Personal data in the response should be masked",
	MitigationApprove:        "A person must approve the action before it is carried out",
	MitigationBlock:          "The response should not reach the user",
}

// mostAdvice is the number of replacements that details name.
const mostAdvice = 10

// MitigationDetails says what a type asks for, and which terms to replace by what.
func MitigationDetails(kind string, given ...Advice) string {
	var parts []string
	for _, a := range given {
		part := a.Replace
		if a.Term != "" {
			part = `"` + a.Term + `" → ` + a.Replace
		}
		if a.Replace != "" && len(parts) < mostAdvice && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	details := mitigationDetails[kind]
	if len(parts) == 0 {
		return details
	}
	sep := ". Wording: "
	if kind == MitigationReplace {
		sep = ": "
	}
	return details + sep + strings.Join(parts, "; ")
}

package seal

import "strings"

// Erasure is what a signature is of that stands with an erasure of a person: of one day, what it takes. Events names it: interactions whose texts go by the
// hashes of [Event], and texts that came later by those of their names ([LaterText]). Texts is 0; programs that named interactions alone put there how
// many rows of texts they took. It is of version 1 and never changes.
var Erasure = Form{"evenhand.seal.erasure.1\n", []Column{
	{Name: "tenant_id"}, {Name: "erasure_id", Kind: UUID}, {Name: "event_day", Kind: Day}, {Name: "taken_id", Kind: UUID},
	number("seal_version"), {Name: "at", Kind: Time}, number("texts"), {Name: "events", Kind: Numbers}, {Name: "signer"},
}}

// LaterText is what seals the texts that came later.
var LaterText = Facts[len(Facts)-1]

// Kinds of texts that came later: ErasedLater goes with an erasure of the person, RevealReason stays.
var ErasedLater = [...]string{"review_note", "outside_report", "outside_mitigation", "judge_verdict", "feedback_note", "gate", "gate_note"}

// RevealReason is why a member of staff looked at what is masked.
const RevealReason = "reveal_reason"

// ErasedLaterSQL is the condition that a text of column kind is one of ErasedLater.
func ErasedLaterSQL() string { return "kind IN ('" + strings.Join(ErasedLater[:], "', '") + "')" }

// ReasonNameSQL is the expression of the hash that names the reason of a row of reveals.
func ReasonNameSQL() string {
	return LaterText.Name().SQL(map[string]string{"kind": "'" + RevealReason + "'", "source_id": "toFixedString(unhex(replaceAll(toString(reveal_id), '-', '')), 32)"})
}

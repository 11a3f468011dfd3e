package seal

// Erasure is what a signature is of that stands with an erasure of a person: of one day, the interactions whose texts it
// takes, by the hashes of [Event], and how many rows of texts those are. It is of version 1 and never changes.
var Erasure = Form{"evenhand.seal.erasure.1\n", []Column{
	{Name: "tenant_id"}, {Name: "erasure_id", Kind: UUID}, {Name: "event_day", Kind: Day}, {Name: "taken_id", Kind: UUID},
	number("seal_version"), {Name: "at", Kind: Time}, number("texts"), {Name: "events", Kind: Numbers}, {Name: "signer"},
}}

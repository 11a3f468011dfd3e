package join

import (
	"testing"

	"github.com/evenhand/evenhand/ingest/call"
)

// A wrapper that says what no call beneath it says is told, or is the answer of a call that was told without texts; one that says it again, in whatever
// shape, is not.
func TestWrappers(t *testing.T) {
	model := call.Part{Kind: call.Model, Key: "m", Parent: "o", Messages: user("who may lead"), Answers: reply("the team decides that together")}
	says := func(text string) call.Part {
		return call.Part{Kind: call.Outer, Key: "o", Messages: user("who may lead"), Answers: reply(text)}
	}
	const other = "women are too emotional to lead"
	blind := call.Part{Kind: call.Model, Key: "m", Parent: "o"}
	failed := blind
	failed.Status = "error"
	const inner = "m  user:who may lead → the team decides that together"
	for _, tc := range []struct {
		name  string
		parts []call.Part
		want  string
	}{
		{"the same", []call.Part{model, says("The team decides that together.")}, inner},
		{"in JSON", []call.Part{model, says(`{"answer":"the team decides that together","score":0.9,"label":"fine"}`)}, inner},
		{"with a label", []call.Part{model, says("Final answer: the team")}, inner},
		{"a label alone", []call.Part{model, says("category: leadership")}, inner},
		{"something else", []call.Part{model, says(other)}, inner + "\no  user:who may lead → " + other},
		{"something else, before its call", []call.Part{says(other), model}, "o  user:who may lead → " + other + "\n" + inner},
		{"something else twice", []call.Part{model, {Kind: call.Outer, Key: "o", Parent: "p", Answers: reply(other)}, {Kind: call.Outer, Key: "p", Answers: reply(other)}}, inner + "\no  → " + other},
		{"of a call without texts", []call.Part{blind, says(other)}, "m  user:who may lead → " + other},
		{"of a call that failed", []call.Part{failed, says(other)}, "m  →\no  user:who may lead → " + other},
		{"of two calls without texts", []call.Part{blind, {Kind: call.Model, Key: "n", Parent: "o"}, says(other)}, "m  →\nn  →\no  user:who may lead → " + other},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := calls(tc.parts...); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

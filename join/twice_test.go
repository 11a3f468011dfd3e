package join

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

func tool(arguments string) []call.Message {
	return []call.Message{{Role: "assistant", Calls: json.RawMessage(`[{"id":"7","type":"function","function":{"name":"weather","arguments":` + arguments + `}}]`)}}
}

// One call that is told under two keys is one call.
func TestToldTwice(t *testing.T) {
	begun := call.Part{Kind: call.Model, Key: "s", Parent: "p", Messages: user("q"), Claimed: "acme"}
	end := call.Part{Kind: call.Model, Key: "l", Parent: "p", Messages: user("q"), Answers: reply("a"), Ends: true}
	agent := call.Part{Kind: call.Model, Key: "p", Parent: "r", Messages: user("q"), System: "be kind", Answers: reply("a")}
	of := func(p call.Part, change func(*call.Part)) call.Part { change(&p); return p }
	for _, tc := range []struct {
		name  string
		parts []call.Part
		want  string
	}{
		{"a stream and its end", []call.Part{begun, end}, "s acme user:q → a"},
		{"at the root", []call.Part{of(begun, func(p *call.Part) { p.Parent = "" }), of(end, func(p *call.Part) { p.Parent = "" })}, "s acme user:q → a"},
		{"an end alone is the call", []call.Part{end}, "l  user:q → a"},
		{"a beginning alone, too", []call.Part{begun}, "s acme user:q →"},
		{"of another prompt", []call.Part{begun, of(end, func(p *call.Part) { p.Messages = user("other") })}, "s acme user:q →\nl  user:other → a"},
		{"under another parent", []call.Part{begun, of(end, func(p *call.Part) { p.Parent = "x" })}, "s acme user:q →\nl  user:q → a"},
		{"two streams of one prompt", []call.Part{begun, of(begun, func(p *call.Part) { p.Key = "s2" }), end, of(end, func(p *call.Part) { p.Key, p.Answers = "l2", reply("b") })},
			"s acme user:q → a\ns2 acme user:q → b"},
		{"not an end", []call.Part{begun, of(end, func(p *call.Part) { p.Ends = false })}, "s acme user:q →\nl  user:q → a"},
		{"beneath the call of a framework", []call.Part{begun, end, agent, {Kind: call.Context, Key: "r", Domain: "hr"}}, "p acme system:be kind user:q → a"},
		{"with spans between", []call.Part{of(begun, func(p *call.Part) { p.Parent, p.Answers = "c", reply("a") }), {Kind: call.Context, Key: "c", Parent: "p"}, agent}, "p acme system:be kind user:q → a"},
		{"another answer beneath", []call.Part{of(begun, func(p *call.Part) { p.Answers = reply("b") }), agent}, "s acme user:q → b\np  system:be kind user:q → a"},
		{"another prompt beneath", []call.Part{of(end, func(p *call.Part) { p.Messages = user("judge this") }), agent}, "l  user:judge this → a\np  system:be kind user:q → a"},
		{"calls of a tool, each in its own words", []call.Part{of(begun, func(p *call.Part) { p.Answers = tool(`{"city":"Ghent"}`) }), of(agent, func(p *call.Part) { p.Answers = tool(`"{}"`) })}, "p acme system:be kind user:q →"},
		{"twice in a row", []call.Part{of(begun, func(p *call.Part) { p.Key, p.Parent, p.Answers = "b", "m", reply("a") }), {Kind: call.Model, Key: "m", Parent: "p", Messages: user("q"), Answers: reply("a")}, agent}, "p acme system:be kind user:q → a"},
	} {
		if got := calls(tc.parts...); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, tc.want)
		}
	}
}

// What told a call once more and comes again adds nothing; the facts are those of the end.
func TestToldTwiceAndAgain(t *testing.T) {
	w := newWorld(t, 1)
	w.most = 1
	end := text("l", call.Part{Kind: call.Model, Messages: user("q"), Answers: reply("a"), Ends: true, Model: "m-2", Time: noon, Latency: time.Second})
	w.put(time.Second, text("s", call.Part{Kind: call.Model, Messages: user("q"), Model: "m", Time: noon.Add(-time.Second), Latency: time.Millisecond}))
	w.put(31*time.Second, end)
	w.put(time.Second, end)
	w.join()
	if es := w.only("default", "trace", "s"); len(es) != 1 || es[0].text() != "user:q → a" || es[0].Model != "m-2" || es[0].Timestamp != "2026-11-22T12:00:00.000Z" {
		t.Errorf("%+v", w.told())
	}
	w.want(map[string]int{"called otlp": 1, "late dropped": 1})
}

package join

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

// calls gives the events that a group of parts makes, as "key tenant text" lines in the order of their first parts.
func calls(parts ...call.Part) string {
	var ps []piece
	for i, p := range parts {
		ps = append(ps, piece{Part: p, offset: int64(i), at: noon})
	}
	var lines []string
	for _, n := range assemble(ps, nil) {
		if !n.isCall() {
			continue
		}
		var e event
		e.Messages = n.Messages
		if n.System != "" {
			e.Messages = append([]call.Message{call.Text("system", n.System)}, e.Messages...)
		}
		for _, a := range n.Answers {
			e.Response = append(e.Response, a.Content...)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", n.key, n.Claimed, e.text())))
	}
	return strings.Join(lines, "\n")
}

func at(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }

func placed(n int, m call.Message) []call.Message {
	m.N = n
	return []call.Message{m}
}

func TestAssemble(t *testing.T) {
	model := call.Part{Kind: call.Model, Key: "m", Parent: "o", Messages: user("q"), Answers: reply("a")}
	outer := call.Part{Kind: call.Outer, Key: "o", Messages: user("q"), Answers: reply("a"), Claimed: "acme"}
	facts := call.Part{Kind: call.Model, Key: "m", Withheld: true}
	for _, tc := range []struct {
		name  string
		parts []call.Part
		want  string
	}{
		{"context alone is nothing", []call.Part{{Kind: call.Context, Key: "c", Claimed: "acme"}}, ""},
		{"a wrapper is dropped, what it says holds", []call.Part{model, outer}, "m acme user:q → a"},
		{"a wrapper alone is the call", []call.Part{outer}, "o acme user:q → a"},
		{"of wrappers the inner one is the call", []call.Part{outer, {Kind: call.Outer, Key: "i", Parent: "o", Messages: user("q"), Answers: reply("a")}}, "i acme user:q → a"},
		{"at any depth", []call.Part{
			outer, {Kind: call.Outer, Key: "o2", Parent: "o", Messages: user("x")}, {Kind: call.Context, Key: "c", Parent: "o2"},
			{Kind: call.Model, Key: "m", Parent: "c", Messages: user("q")},
		}, "m acme user:q →"},
		{"the nearest holds", []call.Part{
			outer, {Kind: call.Context, Key: "c", Parent: "o", Claimed: "near"}, {Kind: call.Model, Key: "m", Parent: "c", Messages: user("q")},
		}, "m near user:q →"},
		{"two calls of one wrapper", []call.Part{model, outer, {Kind: call.Model, Key: "m2", Parent: "o", Messages: user("q2")}}, "m acme user:q → a\nm2 acme user:q2 →"},
		{"a missing link: the only root holds", []call.Part{outer, {Kind: call.Model, Key: "m", Parent: "gone", Messages: user("q")}}, "m acme user:q →"},
		{"two roots hold nothing", []call.Part{
			{Kind: call.Context, Key: "c", Claimed: "acme"}, {Kind: call.Context, Key: "d", Claimed: "beta"}, {Kind: call.Model, Key: "m", Parent: "gone", Messages: user("q")},
		}, "m  user:q →"},
		{"a root call has nothing above", []call.Part{{Kind: call.Context, Key: "c", Claimed: "acme"}, {Kind: call.Model, Key: "m", Messages: user("q")}}, "m  user:q →"},
		{"the wrapper's instructions", []call.Part{
			{Kind: call.Model, Key: "m", Parent: "o", Messages: user("q")}, {Kind: call.Outer, Key: "o", System: "be kind", Messages: user("q")},
		}, "m  system:be kind user:q →"},
		{"its own instructions hold", []call.Part{
			{Kind: call.Model, Key: "m", Parent: "o", Messages: append([]call.Message{call.Text("system", "mine")}, user("q")...)},
			{Kind: call.Outer, Key: "o", System: "be kind", Messages: user("q")},
		}, "m  system:mine user:q →"},
		{"texts that come apart, by place", []call.Part{
			{Kind: call.Content, Key: "m", Answers: reply("a"), Time: at(3)},
			{Kind: call.Content, Key: "m", Messages: placed(1, call.Text("user", "q")), Time: at(1)}, facts,
			{Kind: call.Content, Key: "m", Messages: placed(0, call.Text("system", "s")), Time: at(2)},
		}, "m  system:s user:q → a"},
		{"and by time", []call.Part{
			{Kind: call.Content, Key: "m", Messages: user("second"), Time: at(2)}, {Kind: call.Content, Key: "m", Messages: user("first"), Time: at(1)}, facts,
		}, "m  user:first user:second →"},
		{"instructions apart from messages", []call.Part{
			{Kind: call.Content, Key: "m", System: "s", Answers: reply("a")}, {Kind: call.Content, Key: "m", Messages: user("q")}, facts,
		}, "m  system:s user:q → a"},
		{"span and event say the same", []call.Part{model, {Kind: call.Model, Key: "m", Messages: user("q"), Answers: reply("a"), Claimed: "acme"}}, "m acme user:q → a"},
		{"the one with texts leads", []call.Part{facts, {Kind: call.Model, Key: "m", System: "s", Messages: user("q"), Answers: reply("a")}}, "m  system:s user:q → a"},
		{"texts whose facts never come", []call.Part{{Kind: call.Content, Key: "m", Messages: user("q")}}, "m  user:q →"},
		{"links in a ring", []call.Part{
			{Kind: call.Context, Key: "c", Parent: "d", Claimed: "acme"}, {Kind: call.Context, Key: "d", Parent: "c"}, {Kind: call.Model, Key: "m", Parent: "c", Messages: user("q")},
			{Kind: call.Outer, Key: "o", Parent: "o", Messages: user("x")},
		}, "m acme user:q →\no  user:x →"},
	} {
		got := calls(tc.parts...)
		if got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.name, got, tc.want)
		}
		// Whatever comes first: the same calls. Of texts without places and times, the order is that of their coming.
		turned := slices.Clone(tc.parts)
		slices.Reverse(turned)
		lines := func(s string) []string { l := strings.Split(s, "\n"); slices.Sort(l); return l }
		if back := calls(turned...); !slices.Equal(lines(back), lines(tc.want)) {
			t.Errorf("%s, backwards:\n%s", tc.name, back)
		}
	}
}

// A chain of fifty thousand links costs no stack and no square.
func TestDeepChain(t *testing.T) {
	const n = 50_000
	parts := []call.Part{{Kind: call.Context, Key: "0", Claimed: "acme"}}
	for i := 1; i < n; i++ {
		parts = append(parts, call.Part{Kind: call.Outer, Key: fmt.Sprint(i), Parent: fmt.Sprint(i - 1)})
	}
	parts = append(parts, call.Part{Kind: call.Model, Key: "m", Parent: fmt.Sprint(n - 1), Messages: user("q")})
	if got := calls(parts...); got != "m acme user:q →" {
		t.Errorf("%.200s", got)
	}
}

// Merging writes into no part's metadata.
func TestMetadataIsNotShared(t *testing.T) {
	above := map[string]any{"app": "desk"}
	own := map[string]any{"a": 1.0}
	calls(call.Part{Kind: call.Outer, Key: "o", Metadata: above}, call.Part{Kind: call.Model, Key: "m", Parent: "o", Messages: user("q"), Metadata: own},
		call.Part{Kind: call.Model, Key: "m", Metadata: map[string]any{"b": 2.0}}, call.Part{Kind: call.Model, Key: "n", Parent: "o", Messages: user("q")})
	if len(above) != 1 || len(own) != 1 {
		t.Errorf("%v %v", above, own)
	}
}

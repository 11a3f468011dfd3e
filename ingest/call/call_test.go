package call_test

import (
	"fmt"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/sources"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// decode makes the interaction that the pipeline would.
func decode(t *testing.T, p call.Part, tenant string) *audit.Interaction {
	t.Helper()
	value, err := p.Event(tenant)
	if err != nil {
		t.Fatal(err)
	}
	in, faults := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"}).Check(sources.Record{Value: value, Time: noon}, audit.Origin{BrokerTime: noon})
	if len(faults) > 0 {
		t.Fatalf("%v\n%s", faults, value)
	}
	return in
}

// A call that is told in three parts is the call that is told in one.
func TestPartsMakeTheWhole(t *testing.T) {
	n := int32(12)
	whole := call.Part{
		Kind: call.Model, Group: "g", Key: "k", Time: noon, Latency: 1500 * time.Millisecond, Service: "desk", Session: "s", Domain: "hr", UserID: "u",
		Provider: "openai", Model: "m", Tokens: [2]*int32{&n, nil}, Messages: []call.Message{call.Text("system", "be kind"), call.Text("user", "hello")},
		Answers: []call.Message{call.Text("assistant", "hi")}, Metadata: map[string]any{"a": 1.0, "b": "two"},
	}
	prompt := call.Part{Kind: call.Content, Group: "g", Key: "k", Messages: whole.Messages[:1]}
	more := call.Part{Kind: call.Content, Group: "g", Key: "k", Messages: whole.Messages[1:], Answers: whole.Answers}
	facts := whole
	facts.Messages, facts.Answers, facts.Withheld = nil, nil, true
	facts.Service, facts.Domain, facts.UserID, facts.Metadata = "", "", "", map[string]any{"a": 1.0}
	above := call.Part{Kind: call.Context, Service: "desk", Domain: "hr", UserID: "u", Claimed: "acme", Metadata: map[string]any{"a": 2.0, "b": "two"}}
	got := call.Inherit(call.Merge(call.Merge(facts, call.Merge(prompt, more)), whole), above)
	if got.Withheld || got.Claimed != "acme" {
		t.Errorf("%+v", got)
	}
	if d := gocmp.Diff(decode(t, whole, "acme"), decode(t, got, got.Claimed)); d != "" {
		t.Error(d)
	}
}

func TestEvent(t *testing.T) {
	in := decode(t, call.Part{Group: "g", Key: "k", Answers: []call.Message{call.Text("assistant", "hi")}, System: "be kind", TemplateID: "t", TemplateVer: "2"}, "acme")
	if in.ID != call.ID("acme", "g", "k") || in.Tenant != "acme" || in.Response != "hi" || in.Prompt != "be kind" || in.TemplateVersion != "2" {
		t.Errorf("%+v", in)
	}
	in = decode(t, call.Part{Group: "g", Key: "k", Answers: []call.Message{call.Text("assistant", "one"), call.Text("assistant", "two")}}, "")
	if in.Tenant != "default" || in.Response == "" || in.ResponseJSON == "" {
		t.Errorf("%+v", in)
	}
	if call.ID("a", "g", "k") == call.ID("b", "g", "k") {
		t.Error("two tenants share an event")
	}
}

// Pieces that are sent again add nothing, instructions above hold, and the span's time is the call's.
func TestMergeAndInherit(t *testing.T) {
	piece := call.Part{Kind: call.Content, Messages: []call.Message{call.Text("user", "hello")}, Time: noon}
	more := call.Part{Kind: call.Content, Answers: []call.Message{call.Text("assistant", "hi")}}
	span := call.Part{Kind: call.Model, Time: noon.Add(time.Minute), Latency: time.Second, Withheld: true}
	got := call.Merge(call.Merge(call.Merge(call.Merge(piece, more), piece), span), more)
	if len(got.Messages) != 1 || len(got.Answers) != 1 || got.Withheld || got.Kind != call.Model || !got.Time.Equal(span.Time) {
		t.Errorf("%+v", got)
	}
	if other := call.Merge(span, call.Merge(piece, more)); !other.Time.Equal(got.Time) || len(other.Answers) != 1 {
		t.Errorf("%+v", other)
	}
	above := call.Part{Kind: call.Context, System: "be kind"}
	if got := call.Inherit(got, above); got.System != "be kind" {
		t.Errorf("%+v", got)
	}
	got.Messages = append([]call.Message{call.Text("system", "be brief")}, got.Messages...)
	if got := call.Inherit(got, above); got.System != "" {
		t.Errorf("%+v", got)
	}
}

// Of what a guard decided about an answer on its way the last holds, in any order.
func TestNotesSoFar(t *testing.T) {
	say := func(text, note string) call.Part {
		p := call.Part{Kind: call.Model, Group: "g", Key: "g", SoFar: true, Answers: []call.Message{call.Text("assistant", text)}, Metadata: map[string]any{"a": "b"}}
		if note != "" {
			p.Metadata[call.GuardNote] = note
		}
		return p
	}
	for want, parts := range map[string][]call.Part{
		"map[a:b guard:two]": {say("a", "one"), say("abc", "two"), say("ab", "")},
		"map[a:b]":           {say("a", "one"), say("abc", "")},
		"map[a:b guard:one]": {say("a", ""), say("a", "one")},
	} {
		for from := range parts {
			got := parts[from]
			for i := 1; i < len(parts); i++ {
				got = call.Merge(got, parts[(from+i)%len(parts)])
			}
			if fmt.Sprint(got.Metadata) != want {
				t.Errorf("from %d: %v, want %s", from, got.Metadata, want)
			}
		}
	}
}

// What a guard saw of an answer on its way, the last of it and what a logger tells of the end fold into one in any order.
func TestAnswersSoFar(t *testing.T) {
	say := func(text string, soFar bool, status string) call.Part {
		p := call.Part{Kind: call.Model, Group: "g", Key: "g", SoFar: soFar, Status: status}
		if text != "" {
			p.Answers = []call.Message{call.Text("assistant", text)}
		}
		return p
	}
	asked := call.Part{Kind: call.Model, Group: "g", Key: "g", Messages: []call.Message{call.Text("user", "hello")}, Asked: true}
	for _, tc := range []struct {
		name         string
		parts        []call.Part
		want, status string
	}{
		{"the longest", []call.Part{asked, say("a", true, ""), say("abc", true, ""), say("ab", true, "")}, "abc", "success"},
		{"the whole", []call.Part{asked, say("abcdef", true, ""), say("[X]", false, "success")}, "[X]", "success"},
		{"what was stopped, and a logger that saw nothing", []call.Part{say("", false, "error"), asked, say("abc", true, "blocked"), say("ab", true, "")}, "abc", "blocked"},
	} {
		for from := range tc.parts {
			got := tc.parts[from]
			for i := 1; i < len(tc.parts); i++ {
				got = call.Merge(got, tc.parts[(from+i)%len(tc.parts)])
			}
			in := decode(t, got, "acme")
			if in.Response != tc.want || in.Prompt != "hello" || in.Status != tc.status || got.Asked {
				t.Errorf("%s from %d: %q, %q, %s, asked %v", tc.name, from, in.Prompt, in.Response, in.Status, got.Asked)
			}
		}
	}
}

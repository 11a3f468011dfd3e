package otlp_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/otlp"
	"github.com/evenhand/evenhand/sources"
)

// told is one of the seven calls, as every client was made to make it.
type told struct {
	Trace, Prompt, Response, User, Tenant, Domain string
	Tokens                                        [2]int32
	Asked, Answered                               string // models
}

// seven reads the calls out of one capture with nothing but its attributes' names, so that the decoder is not its own measure.
func seven(t *testing.T) (all []told) {
	t.Helper()
	var doc struct {
		ResourceSpans []struct {
			ScopeSpans []struct {
				Spans []struct {
					TraceID    string `json:"traceId"`
					SpanID     string `json:"spanId"`
					ParentID   string `json:"parentSpanId"`
					Attributes []struct {
						Key   string
						Value struct {
							StringValue string
							IntValue    int32 `json:",string"`
						}
					}
				}
			}
		}
	}
	b, err := os.ReadFile(detectortest.Shared(t, "data", "events", "decoded", "openinference-openai-0.1.66.traces.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	texts := map[string]map[string]string{} // of each span
	for _, ss := range doc.ResourceSpans[0].ScopeSpans {
		for _, s := range ss.Spans {
			text := map[string]string{}
			for _, a := range s.Attributes {
				text[a.Key] = a.Value.StringValue
			}
			texts[s.SpanID] = text
		}
	}
	for _, ss := range doc.ResourceSpans[0].ScopeSpans {
		for _, s := range ss.Spans {
			text, app, number := texts[s.SpanID], texts[s.ParentID], map[string]int32{}
			for _, a := range s.Attributes {
				number[a.Key] = a.Value.IntValue
			}
			if text["openinference.span.kind"] != "LLM" {
				continue
			}
			var asked map[string]any
			_ = json.Unmarshal([]byte(text["llm.invocation_parameters"]), &asked)
			all = append(all, told{
				Trace: s.TraceID, Prompt: text["llm.input_messages.0.message.content"] + "\n\n" + text["llm.input_messages.1.message.content"],
				Response: text["llm.output_messages.0.message.content"], User: app["user.id"], Tenant: app["tenant.id"], Domain: app["app.domain"],
				Tokens: [2]int32{number["llm.token_count.prompt"], number["llm.token_count.completion"]},
				Asked:  asked["model"].(string), Answered: text["llm.model_name"],
			})
		}
	}
	if len(all) != 7 {
		t.Fatalf("%d calls", len(all))
	}
	return all
}

// gather does with parts what package join does: one call of the parts of one key, with what stands above.
func gather(parts []call.Part) (calls []call.Part) {
	type key struct{ group, key string }
	at := map[key]call.Part{}
	var order []key
	for _, p := range parts {
		k := key{p.Group, p.Key}
		if was, has := at[k]; has {
			p = call.Merge(was, p)
		} else {
			order = append(order, k)
		}
		at[k] = p
	}
	beneath := map[key]bool{} // has a call of a model beneath it
	for _, k := range order {
		if at[k].Kind != call.Model {
			continue
		}
		for p := at[k]; p.Parent != ""; p = at[key{p.Group, p.Parent}] {
			beneath[key{p.Group, p.Parent}] = true
		}
	}
	for _, k := range order {
		p := at[k]
		if p.Kind == call.Context || p.Kind == call.Outer && beneath[k] {
			continue
		}
		for up := p; up.Parent != ""; {
			up = at[key{up.Group, up.Parent}]
			p = call.Inherit(p, up)
		}
		calls = append(calls, p)
	}
	return calls
}

// interaction makes of a call what the pipeline would.
func interaction(t *testing.T, p call.Part) *audit.Interaction {
	t.Helper()
	value, err := p.Event(p.Claimed)
	if err != nil {
		t.Fatal(err)
	}
	d := ingest.NewDecoder(ingest.Options{DefaultTenant: "default"})
	m, in, faults := d.Prepare(value, ingest.Sender{Now: received, Limit: 900_000})
	if len(faults) > 0 {
		t.Fatalf("%v\n%s", faults, value)
	}
	if back, rej := d.Decode(sources.Record{Value: m.Value, Time: received}, audit.Origin{BrokerTime: received}); rej != nil || back.ID != call.ID(p.Claimed, p.Group, p.Key) {
		t.Fatalf("the pipeline does not take it: %+v", rej)
	}
	return in
}

var received = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

// parts decodes the captured files of one client, in the order that they were sent.
func parts(t testing.TB, names ...string) (all []call.Part) {
	t.Helper()
	for _, n := range names {
		b, err := os.ReadFile(detectortest.Shared(t, "data", "events", n+".bin"))
		if err != nil {
			t.Fatal(err)
		}
		f := otlp.Traces(otlp.Names{})
		if strings.Contains(n, ".logs") {
			f = otlp.Logs(otlp.Names{})
		}
		ps, err := f.Parts(call.Payload{Body: b, ContentType: "application/x-protobuf", Received: received})
		if err != nil {
			t.Fatalf("%s: %v", n, err)
		}
		all = append(all, ps...)
	}
	return all
}

// What of a call a client does not send, or sends otherwise than the rest.
const (
	noTrace   = "trace"
	noTenant  = "tenant" // nor domain
	noUser    = "user"
	noTokens  = "tokens"
	noText    = "text"
	asked     = "asked" // tells only the model that was asked
	noService = "service"
	oneOwner  = "owner" // the application told the client whose the calls are once, and sent it all seven
)

var captures = []struct {
	name  string
	files []string
	lacks []string
}{
	{"gen_ai on the span", []string{"otel-openai-v2-2.4b0-span.traces"}, nil},
	{"gen_ai on the record", []string{"otel-openai-v2-2.4b0-event.logs", "otel-openai-v2-2.4b0-event.traces"}, nil},
	{"gen_ai on the record, after the span", []string{"otel-openai-v2-2.4b0-event.traces", "otel-openai-v2-2.4b0-event.logs"}, nil},
	{"gen_ai on the record without spans", []string{"otel-openai-v2-2.4b0-event.logs"}, []string{noTenant, noUser}},
	{"gen_ai on both, streamed", []string{"otel-openai-v2-2.4b0-both-stream.traces", "otel-openai-v2-2.4b0-both-stream.logs"}, nil},
	{"gen_ai, capture off", []string{"otel-openai-v2-2.4b0-nocontent.traces"}, []string{noText}},
	{"a record a message", []string{"otel-openai-v2-2.0b0-legacy.logs", "otel-openai-v2-2.0b0-legacy.traces"}, nil},
	{"OpenLLMetry, flat", []string{"traceloop-openai-0.40.14.traces"}, nil},
	{"OpenLLMetry", []string{"traceloop-openai-0.62.4.traces"}, nil},
	{"OpenLLMetry, streamed", []string{"traceloop-openai-0.62.4-stream.traces"}, nil},
	{"OpenLLMetry, a record a message", []string{"traceloop-openai-0.62.4-events.logs1", "traceloop-openai-0.62.4-events.logs2", "traceloop-openai-0.62.4-events.traces"}, nil},
	{"OpenLLMetry, records sent twice", []string{"traceloop-openai-0.62.4-events.traces", "traceloop-openai-0.62.4-events.logs1", "traceloop-openai-0.62.4-events.logs1", "traceloop-openai-0.62.4-events.logs2", "traceloop-openai-0.62.4-events.logs2"}, nil},
	{"OpenInference", []string{"openinference-openai-0.1.66.traces"}, []string{oneOwner}},
	{"Langfuse, OpenAI", []string{"langfuse-python-5.0.4-openai-dropin.traces"}, []string{noService}},
	{"Langfuse, observe", []string{"langfuse-python-5.0.4-observe.traces"}, []string{noService, noTokens, asked}},
	{"Vercel 6", []string{"vercel-ai-6.0.326-generateText.traces"}, nil},
	{"Vercel 6, streamed", []string{"vercel-ai-6.0.326-streamText.traces"}, nil},
	{"Vercel 7", []string{"vercel-ai-7.0.4-generateText.traces"}, []string{noTenant, noUser, asked}},
	{"Vercel 7, streamed", []string{"vercel-ai-7.0.4-streamText.traces"}, []string{noTenant, noUser, asked}},
	{"LiteLLM", []string{"litellm-sdk-1.106.2-otel.traces"}, []string{noTrace, noTokens, asked}},
}

// Every client's seven calls are the same seven calls, once each.
func TestCaptures(t *testing.T) {
	want := seven(t)
	for _, tc := range captures {
		t.Run(tc.name, func(t *testing.T) {
			lacks := func(what string) bool { return slices.Contains(tc.lacks, what) }
			calls := gather(parts(t, tc.files...))
			if len(calls) != len(want) {
				t.Fatalf("%d calls", len(calls))
			}
			var got []told
			for _, p := range calls {
				in := interaction(t, p)
				if lacks(noText) != p.Withheld || lacks(noText) != in.WithoutContent {
					t.Errorf("withheld %v, without content %v", p.Withheld, in.WithoutContent)
				}
				if p.SpanID != p.Key || p.Time.IsZero() || in.TimeAssumed || p.Latency == 0 && !strings.Contains(tc.name, "without spans") {
					t.Errorf("span %s, time %v, latency %v", p.SpanID, p.Time, p.Latency)
				}
				if lacks(noService) != (in.Application == "") || !lacks(noService) && in.Application != "hiring-bot" {
					t.Errorf("application %q", in.Application)
				}
				if in.Provider != "openai" && !strings.HasPrefix(tc.name, "Langfuse") {
					t.Errorf("provider %q", in.Provider)
				}
				if in.Status != "success" {
					t.Errorf("status %q: %s", in.Status, in.ErrorMessage)
				}
				got = append(got, told{in.TraceID, in.Prompt, in.Response, in.UserID, in.Tenant, string(in.Domain), [2]int32{in.PromptTokens, in.ResponseTokens}, "", in.Model})
			}
			expected := slices.Clone(want)
			for i := range expected {
				w := &expected[i]
				if lacks(asked) {
					w.Answered = w.Asked
				}
				if lacks(oneOwner) {
					w.User, w.Tenant, w.Domain = want[0].User, want[0].Tenant, want[0].Domain
				}
				if lacks(noTenant) {
					w.Tenant, w.Domain = "default", "general"
				}
				if lacks(noUser) {
					w.User = ""
				}
				if lacks(noText) {
					w.Prompt, w.Response = "", ""
				}
				if w.Asked = ""; lacks(noTokens) {
					w.Tokens = [2]int32{}
				}
				if lacks(noTrace) {
					w.Trace = ""
				}
			}
			for i := range got {
				if lacks(noTokens) {
					got[i].Tokens = [2]int32{}
				}
				if lacks(noTrace) {
					got[i].Trace = ""
				}
			}
			byTexts := func(a, b told) int { return strings.Compare(a.Trace+a.Response, b.Trace+b.Response) }
			slices.SortFunc(got, byTexts)
			slices.SortFunc(expected, byTexts)
			if d := gocmp.Diff(expected, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// OTLP's JSON has ids in hexadecimal; it tells the same as protobuf.
func TestJSONIsProtobuf(t *testing.T) {
	files, err := filepath.Glob(detectortest.Shared(t, "data", "events", "decoded") + "/*.json")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f := otlp.Traces(otlp.Names{})
		if strings.Contains(name, ".logs") {
			f = otlp.Logs(otlp.Names{})
		}
		for _, kind := range []string{"application/json; charset=utf-8", ""} {
			got, err := f.Parts(call.Payload{Body: b, ContentType: kind})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if d := gocmp.Diff(parts(t, name), got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

package main

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// receiver is a front door that keeps what it is sent.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	requests int
	events   []map[string]any
	judge    func(events []map[string]any) int // instead of answer, by the request's events
	answer   func(request int) int             // status of a request, counted from 1; events of others than 202 are kept, too
}

func newReceiver(t *testing.T, answer func(request int) int) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if req.URL.Path != "/v1/interactions" || req.Header.Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%s %s %s", req.Method, req.URL, req.Header)
		}
		r.requests++
		before := len(r.events)
		for d := json.NewDecoder(req.Body); d.More(); {
			var e map[string]any
			if err := d.Decode(&e); err != nil {
				t.Error(err)
				break
			}
			r.events = append(r.events, e)
		}
		if r.judge != nil {
			w.WriteHeader(r.judge(r.events[before:]))
			return
		}
		w.WriteHeader(r.answer(r.requests))
	}))
	t.Cleanup(r.Close)
	return r
}

func accept(int) int { return http.StatusAccepted }

// fields gives the events with only the named fields, one a line.
func (r *receiver) fields(names ...string) string {
	var b strings.Builder
	for _, e := range r.events {
		for i, n := range names {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "%v", e[n])
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestEmitReadsEveryFormat(t *testing.T) {
	for _, tc := range []struct {
		name, file, content string
		args                []string
		fields              []string
		want                string
	}{
		{"ndjson", "a.ndjson", `{"id":"1","response":"a","prompt_tokens":3}` + "\n\n" + `{"id":"2","response":"b","tenant_id":"own"}`, []string{"--tenant", "acme", "--domain", "hr", "--app", "bot"},
			[]string{"id", "response", "tenant_id", "domain", "application", "prompt_tokens"}, "1 a acme hr bot 3\n2 b own hr bot <nil>\n"},
		{"a JSON array", "a.json", "[{\"id\":\"1\",\"response\":\"a\"},\n{\"id\":\"2\",\"response\":\"b\"}]", nil, []string{"id", "response"}, "1 a\n2 b\n"},
		{"csv", "a.csv", "\ufeffid,response,prompt_tokens\n1,\"a, b\nc\",3\n2,b,\n", nil, []string{"id", "response", "prompt_tokens"}, "1 a, b\nc 3\n2 b <nil>\n"},
		{"ndjson with a mark before it", "a.ndjson", "\ufeff" + `{"id":"1","response":"a"}`, nil, []string{"id", "response"}, "1 a\n"},
		{"an array with a mark before it", "a.json", "\ufeff" + `[{"id":"1","response":"a"}]`, nil, []string{"id", "response"}, "1 a\n"},
		{"csv by flag", "a.txt", "id,response\n1,a\n", []string{"--format", "csv"}, []string{"id", "response"}, "1 a\n"},
		{"renamed, the rest as metadata", "a.csv", "id,text,agent,mood\n1,a,bot,grim\n", []string{"--map", "text=response", "--map", "agent=application", "--field", "provider=a;b=c"},
			[]string{"id", "response", "application", "provider", "metadata"}, "1 a bot a;b=c map[mood:grim]\n"},
		{"swapped names", "a.ndjson", `{"id":"1","prompt":"p","response":"r","x":1,"metadata":{"y":2}}`, []string{"--map", "prompt=response", "--map", "response=prompt"},
			[]string{"prompt", "response", "metadata"}, "r p map[x:1 y:2]\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			dir := t.TempDir()
			file := filepath.Join(dir, tc.file)
			write(t, file, tc.content)
			command(t, "", append([]string{"emit", file, "--to", to.URL}, tc.args...)...).says(t, 0, "", fmt.Sprintf("%d sent to %s", len(to.events), to.URL))
			if got := to.fields(tc.fields...); got != tc.want {
				t.Errorf("got\n%swant\n%s", got, tc.want)
			}
			if left, _ := os.ReadDir(dir); len(left) != 1 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestEmitNamesBadLines(t *testing.T) {
	to := newReceiver(t, accept)
	in := strings.Join([]string{
		`{"id":"1","response":"a"}`, `nonsense`, `{"id":"2","respose":"b"}`, `[1]`, `{"id":"3","response":5}`, `{"id":"4","response":"b"} {}`, `{"id":"5","response":"c"}`,
	}, "\n")
	r := command(t, in, "emit", "--to", to.URL)
	for _, want := range []string{"line 2: bad_json", "line 3: unknown_field: respose: ", "did you mean response?", "line 4: wrong_type", "line 5: ", "line 6: bad_json", "2 sent to", "5 bad lines not sent"} {
		r.says(t, 3, "", want)
	}
	if got := to.fields("id"); got != "1\n5\n" {
		t.Errorf("sent %s", got)
	}
	const alone = "Mend the bad lines and send them alone: the whole input once more sends the others that have no id as new events.\n"
	for _, tc := range []struct{ in, says string }{
		{`{"response":"a"}` + "\nnonsense", alone},
		{`{"id":"","response":"a"}` + "\nnonsense\n" + `{"id":"1"}`, alone},
		{`{"id":"1","response":"a"}` + "\nnonsense", "Mend the bad lines and send them, or the whole input once more: what was sent with an id is known by it.\n"},
		{`{"respose":"a"}` + "\n" + `{"id":"1"}`, "or the whole input once more"},
	} {
		command(t, tc.in, "emit", "--to", newReceiver(t, accept).URL).says(t, 3, "", tc.says)
	}
	for _, tc := range []struct{ in, format, want string }{
		{`{"id":"1"}`, "json", "json: wants an array of objects; for one object a line use --format ndjson"},
		{``, "csv", "csv: the first line must name the columns"},
		{`[{"id":"1"},`, "json", "element 2: bad_json: "},
	} {
		command(t, tc.in, "emit", "--to", to.URL, "--format", tc.format).says(t, 1, "", tc.want)
	}
	for name, tc := range map[string]struct{ in, format, want, sent string }{
		"a quote within a field": {"id,response\n1,He said \"hi\" there\n2,b\n", "csv", "line 2: csv: ", "2"},
		"behind a quote":         {"id,response\n\"1\"x,a\n2,b\n", "csv", "line 2: csv: ", "2"},
		"an unclosed quote":      {"id,response\n1,a\n2,\"b", "csv", "line 3: csv: ", "1"},
		"a number with groups":   {"id,response,prompt_tokens\n1,a,\"1,234\"\n2,b,5\n", "csv", "line 2: wrong_type: prompt_tokens: wants a number", "2"},
		"a number of German":     {"id,response,latency_ms\n1,a,\"1.234,5\"\n2,b,1.5\n", "csv", "line 2: wrong_type: latency_ms: wants a number", "2"},
		"a cost of German":       {"id,response,estimated_cost_usd\n1,a,\"0,001\"\n2,b,0.001\n", "csv", "line 2: wrong_type: estimated_cost_usd: wants a number", "2"},
		"more behind an object":  {"id,response,metadata\n1,a,\"{\"\"a\"\":1}garbage\"\n2,b,\"{\"\"a\"\":1} \"\n", "csv", "line 2: wrong_type: metadata: wants", "2"},
		"more behind an array":   {"id,messages\n1,\"[] []\"\n2,[]\n", "csv", "line 2: wrong_type: messages: wants", "2"},
		"a name twice":           {`{"id":"1","response":"a","response":"b"}` + "\n" + `{"id":"2"}`, "ndjson", "line 1: duplicate_key: fault at byte 26", "2"},
		"a name twice, escaped":  {`{"id":"1","response":"a","r\u0065sponse":"b"}` + "\n" + `{"id":"2"}`, "ndjson", "line 1: duplicate_key: a name stands twice", "2"},
		"a name with an escape":  {`{"id":"1","r\u0065spons\u0065":"b"}` + "\n" + `{"id":"2","\u0065":"b"}`, "ndjson", "line 2: unknown_field", "1"},
		"a name twice, deeper":   {`{"id":"1","metadata":{"a":[{"b":1,"b":2}]}}` + "\n" + `{"id":"2"}`, "ndjson", "line 1: duplicate_key", "2"},
		"a name twice, array":    {`[{"id":"1","response":"a","response":"b"},{"id":"2"}]`, "json", "line 1: duplicate_key", "2"},
		"a name twice in a cell": {"id,metadata\n1,\"{\"\"a\"\":1,\"\"a\"\":2}\"\n2,{}\n", "csv", "line 2: duplicate_key", "2"},
		"Latin-1 in a table":     {"id,response\n1,caf\xe9\n2,b\n", "csv", "line 2: invalid_utf8", "2"},
		"Latin-1 in lines":       {"{\"id\":\"1\",\"response\":\"caf\xe9\"}\n{\"id\":\"2\",\"response\":\"b\"}\n", "ndjson", "line 1: invalid_utf8", "2"},
		"Latin-1 in an array":    {"[{\"id\":\"1\",\"response\":\"caf\xe9\"},{\"id\":\"2\",\"response\":\"b\"}]", "json", "line 1: invalid_utf8", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			to := newReceiver(t, accept)
			r := command(t, tc.in, "emit", "--to", to.URL, "--format", tc.format)
			r.says(t, 3, "", tc.want)
			r.says(t, 3, "", "1 sent to")
			if got := to.fields("id"); got != tc.sent+"\n" {
				t.Errorf("sent %s", got)
			}
		})
	}
	command(t, "", "emit", "--to", "127.0.0.1:8787").says(t, 2, "", `--to: "127.0.0.1:8787" is no address such as http://127.0.0.1:8787`)
	command(t, "", "emit", "--to", to.URL, "--domain", "hrr").says(t, 2, "", `--domain: "hrr" is not one of general, hr, finance, healthcare, education`)
}

// Objects over several lines, as pretty printers write them, are read as those of one line are. A line at fault among NDJSON takes no other
// with it, whatever it begins; of a pretty object at fault one line is named.
func TestEmitReadsPrettyObjects(t *testing.T) {
	pretty := func(id string) string {
		return "{\n  \"id\": \"" + id + "\",\n  \"metadata\": {\n    \"a\": [\n      {\n        \"id\": \"inner\"\n      }\n    ]\n  }\n}\n"
	}
	broken := strings.Replace(pretty("x"), "\",\n", "\"\n", 1) // line 3
	const one = `{"id":"1"}` + "\n"
	for _, tc := range []struct {
		name, in string
		sent     string // ids
		says     []string
	}{
		{"one", pretty("1"), "1", nil},
		{"one that ends without a line end", strings.TrimSpace(pretty("1")), "1", nil},
		{"line ends of Windows", strings.ReplaceAll(pretty("1"), "\n", "\r\n"), "1", nil},
		{"with a mark before it", "\ufeff\n" + pretty("1"), "1", nil},
		{"several", pretty("1") + "\n" + pretty("2") + pretty("3"), "1 2 3", nil},
		{"beside lines", one + pretty("2") + one, "1 2 1", nil},
		{"a name on the brace's line", "{\"id\":\n\"1\"}\n" + one, "1 1", nil},
		{"one larger than the reader's memory", "{\n" + strings.Repeat(" ", 2<<20) + "\"id\":\n\"1\"}\n" + one, "1 1", nil},
		{"a fault in a field, its object's line", pretty("1") + strings.Replace(pretty("2"), "metadata", "respose", 1) + pretty("3"), "1 3", []string{"line 11: unknown_field: respose", "1 bad line"}},
		{"one at fault", broken, "", []string{"line 1: bad_json: the object that begins here has a fault in line 3\n", "1 bad line"}},
		{"one at fault among others", pretty("1") + broken + pretty("2"), "1 2", []string{"line 11: bad_json: the object that begins here has a fault in line 13\n", "1 bad line"}},
		{"one that does not end", pretty("1") + strings.TrimSuffix(pretty("2"), "}\n"), "1", []string{"line 11: bad_json: the object that begins here does not end\n", "1 bad line"}},
		{"one that does not end, before another", strings.TrimSuffix(pretty("1"), "}\n") + pretty("2"), "2", []string{"line 1: bad_json: the object that begins here has a fault in line 10\n", "1 bad line"}},
		{"something behind it", strings.TrimSpace(pretty("1")) + ",\n" + pretty("2"), "2", []string{"line 1: bad_json: ", "1 bad line"}},
		{"a name twice", "{\n\"id\":\"1\",\n\"id\":\"2\"\n}\n" + one, "1", []string{"line 1: duplicate_key", "1 bad line"}},
		{"huge", "{\n\"id\":\"x\",\n" + strings.Repeat(strings.Repeat(" ", 1<<20)+"\n", 17) + "}\n" + one, "1", []string{"line 1: too_large: the object that begins here has more than 16 MiB", "1 bad line"}},
		{"a line broken off, before a line", `{"id":"1",` + "\n" + one, "1", []string{"line 1: bad_json", "1 bad line"}},
		{"a line broken off within a text", `{"id":"1` + "\n" + one, "1", []string{"line 1: bad_json", "1 bad line"}},
		{"a line broken off before a value", `{"metadata":` + "\n" + one + one, "1 1", []string{"line 1: bad_json", "1 bad line"}},
		{"a line broken off in an array", `{"messages":[` + "\n" + one + one, "1 1", []string{"line 1: bad_json", "1 bad line"}},
		{"a line broken off, before a line and what would end both", `{"metadata":` + "\n" + one + "}\n", "1", []string{"line 1: bad_json", "line 3: bad_json", "2 bad lines"}},
		{"no margin, as Python writes with an indent of 0", "{\n\"id\": \"1\",\n\"metadata\": {\n\"a\": [\n{\n\"b\": {}\n}\n]\n}\n}\n" + one, "1 1", nil},
		{"objects of one line within", "{\n\"id\": \"1\",\n\"metadata\": {\"a\": [\n  {\"b\": 1},\n  {\"b\": 2}\n]}}\n" + one, "1 1", nil},
		{"a brace alone", "{\n" + one + "{\n" + one, "1 1", []string{"line 1: bad_json", "line 3: bad_json", "2 bad lines"}},
		{"the last line broken off", one + `{"id":"1",`, "1", []string{"line 2: bad_json", "1 bad line"}},
		{"nonsense behind a line broken off", `{"id":"1",` + "\nnonsense\n" + one, "1", []string{"line 1: bad_json", "line 2: bad_json", "2 bad lines"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			code := 0
			if len(tc.says) > 0 {
				code = 3
			}
			r := command(t, tc.in, "emit", "--to", to.URL)
			for _, want := range append(tc.says, fmt.Sprintf("%d sent to", len(strings.Fields(tc.sent)))) {
				r.says(t, code, "", want)
			}
			if got := strings.Join(strings.Fields(to.fields("id")), " "); got != tc.sent {
				t.Errorf("sent %s", got)
			}
		})
	}
}

// A run over objects of several lines goes on as one over lines does, with the same ids.
func TestEmitResumesPrettyObjects(t *testing.T) {
	to := newReceiver(t, func(request int) int {
		if request == 2 {
			return http.StatusInternalServerError
		}
		return http.StatusAccepted
	})
	file := filepath.Join(t.TempDir(), "texts.json")
	var b strings.Builder
	for i := range 5 {
		fmt.Fprintf(&b, "{\n  \"response\": \"%d\"\n}\n", i)
	}
	write(t, file, b.String())
	command(t, "", "emit", file, "--to", to.URL, "--batch", "2").says(t, 1, "", "go on after line 4.")
	command(t, "", "emit", file, "--to", to.URL, "--batch", "2").says(t, 0, "", "3 sent to "+to.URL)
	ids := map[any]any{}
	for _, e := range to.events {
		if was, known := ids[e["id"]]; known && was != e["response"] {
			t.Errorf("%v has the id of %v", e["response"], was)
		}
		ids[e["id"]] = e["response"]
	}
	if len(ids) != 5 {
		t.Errorf("%d ids: %v", len(ids), ids)
	}
}

// fed gives the arguments and the input of a command that reads content, from a file of that name or, for "-", piped.
func fed(t *testing.T, name, content string) (args []string, in string) {
	t.Helper()
	if name == "-" {
		return nil, content
	}
	file := filepath.Join(t.TempDir(), name)
	write(t, file, content)
	return []string{file}, ""
}

// A name in --map that nothing has is an error before anything is sent, where the input can be read twice or is short.
func TestEmitNamesTyposOfMap(t *testing.T) {
	const table, lines = "text,agent\na,bot\n", `{"text":"a"}` + "\n" + `{"text":"b","agent":"bot"}` + "\n"
	long := strings.Repeat(`{"text":"a"}`+"\n", 600)
	for _, tc := range []struct {
		name, file, content string
		maps                []string
		err                 string
		sent                int
	}{
		{"no column", "a.csv", table, []string{"txet=response"}, "--map txet=response: the input has no column txet (did you mean text?)", 0},
		{"none that is near", "a.csv", table, []string{"nosuch=application"}, "--map nosuch=application: the input has no column nosuch; it has agent, text", 0},
		{"no field of the event", "a.csv", table, []string{"text=respones"}, "--map text=respones: respones is not a field of the event (did you mean response?)", 0},
		{"all faults at once", "a.csv", table, []string{"text=respones", "agent=nosuch"}, "--map agent=nosuch: nosuch is not a field of the event; it has ", 0},
		{"in no line", "a.ndjson", long, []string{"text=response", "agnet=application"}, "--map agnet=application: no line of the input has agnet; it has text", 0},
		{"in one line", "a.ndjson", lines, []string{"text=response", "agent=application"}, "", 2},
		{"in the last line", "a.ndjson", long + `{"agent":"bot"}`, []string{"text=response", "agent=application"}, "", 601},
		{"an array", "a.json", `[{"text":"a"}]`, []string{"txt=response"}, "--map txt=response: no line of the input has txt (did you mean text?)", 0},
		{"nothing to look at", "a.ndjson", "", []string{"text=response"}, "", 0},
		{"piped", "-", lines, []string{"txet=response"}, "--map txet=response: no line of the input has txet (did you mean text?)", 0},
		{"piped, a table", "-", table, []string{"txet=response"}, "the input has no column txet", 0},
		{"piped and long", "-", long, []string{"txet=response"}, "no line of the input has txet", 600},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			file, in := fed(t, tc.file, tc.content)
			args := append([]string{"emit", "--to", to.URL}, file...)
			if tc.file == "-" && tc.content == table {
				args = append(args, "--format", "csv")
			}
			for _, m := range tc.maps {
				args = append(args, "--map", m)
			}
			code := 0
			if tc.err != "" {
				code = 2
			}
			command(t, in, args...).says(t, code, "", tc.err)
			if len(to.events) != tc.sent {
				t.Errorf("%d events were sent, want %d", len(to.events), tc.sent)
			}
		})
	}
}

// What --map and --field say is done whole, or refused: nothing is forgotten, and typed fields are typed.
func TestEmitMapsWholly(t *testing.T) {
	const line = `{"id":"1","response":"a"}`
	for _, tc := range []struct {
		name, in string
		args     string
		code     int
		says     string
		want     string // metadata and typed fields of the events
	}{
		{"two become one field", line, "--map a=response --map a2=response", 2, "--map a2=response: a becomes response already", ""},
		{"one becomes two fields", line, "--map q=prompt --map q=response", 2, "--map q: stands twice", ""},
		{"no mapping", line, "--map response", 2, "--map: wants FROM=TO", ""},
		{"a value twice", line, "--field domain=hr --field domain=general", 2, "--field domain: stands twice", ""},
		{"a value for no field", line, "--field bogus=5 --map response=prompt", 2, "--field bogus: bogus is not a field of the event", ""},
		{"a line has its own", `{"id":"1","response":"b","a":"a"}` + "\n" + `{"id":"2","a":"a"}`, "--map a=response", 3,
			"line 1: alias_conflict: response: the line has one beside what --map makes it; --map response=metadata.response keeps that, too", "<nil> <nil> <nil>"},
		{"a line's own is kept", `{"id":"1","response":"b","a":"a"}`, "--map a=response --map response=metadata.response", 0, "", "map[response:b] <nil> <nil>"},
		{"a table has its own", "id,response,a\n1,b,a\n", "--map a=response", 2, "--map a=response: the input has a column response, too; --map response=metadata.response keeps that", ""},
		{"typed columns", "id,tok,pii,txt\n1,5,TRUE,\n2,6,false,7\n", "--map tok=prompt_tokens --map pii=contained_pii --map txt=response", 0, "", "<nil> 5 true\n<nil> 6 false"},
		{"a typed column of other type", "id,tok\n1,five\n", "--map tok=prompt_tokens", 3, "line 2: wrong_type: prompt_tokens: wants a number", ""},
		{"typed lines stay as they are", `{"id":"1","tok":"5"}`, "--map tok=prompt_tokens", 3, "line 1: wrong_type: prompt_tokens: wants a number", ""},
		{"typed values", line, `--field prompt_tokens=5 --field contained_pii=true --field metadata={"a":1}`, 0, "", "map[a:1] 5 true"},
		{"a typo beside a mapping", `{"id":"1","q":"a","respnse":"b"}` + "\n" + `{"id":"2","q":"a"}`, "--map q=prompt", 3,
			"line 1: unknown_field: respnse: is not a field of the event (did you mean response? --map respnse=response; --map respnse=metadata.respnse keeps it as your own)", "<nil> <nil> <nil>"},
		{"a typo in a table", "id,q,respnse\n1,a,b\n", "--map q=prompt", 2, "column 3, respnse: is not a field of the event (did you mean response?", ""},
		{"all typos of a table", "id,promt,bogus\n1,a,b\n", "", 2, "column 3, bogus: is not a field of the event; name one with --map FROM=TO", ""},
		{"no typo: it is kept", "id,q,respnse\n1,a,b\n", "--map q=prompt --map respnse=metadata.respnse", 0, "", "map[respnse:b] <nil> <nil>"},
		{"no typo: the field is there", "id,response,respnse,mode\n1,a,b,c\n2,,b,\n", "--map id=id", 0, "", "map[mode:c respnse:b] <nil> <nil>\nmap[respnse:b] <nil> <nil>"},
		{"within", `{"id":"1","req":{"prompt":"p","n":{"tok":5}},"x":1}`, "--map req.prompt=prompt --map req.n.tok=prompt_tokens", 0, "", "map[x:1] 5 <nil>"},
		{"within, beside others", `{"id":"1","req":{"prompt":"p","user":"u"}}`, "--map req.prompt=prompt", 0, "", "map[req:map[user:u]] <nil> <nil>"},
		{"a name twice in what is kept", `{"id":"1","x":1,"metadata":{"x":2}}`, "--map id=id", 3, "line 1: duplicate_key: metadata: has x already", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := newReceiver(t, accept)
			command(t, tc.in, append([]string{"emit", "--to", to.URL}, strings.Fields(tc.args)...)...).says(t, tc.code, "", tc.says)
			if got := strings.TrimSpace(to.fields("metadata", "prompt_tokens", "contained_pii")); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// What no way takes is named by line and the rest is sent, in requests that the door takes; the largest that is let
// through is taken by broker and door.
func TestEmitNamesLargeLines(t *testing.T) {
	u := startUp(t, t.TempDir())
	line := func(id string, bytes int) string {
		return `{"id":"` + id + `","tenant_id":"big","response":"` + strings.Repeat("<", bytes-len(id)-len(`{"id":"","tenant_id":"big","response":""}`)) + `"}`
	}
	for _, way := range [][]string{{"--data-dir", u.dir}, {"--to", u.HTTP}} {
		name := strings.TrimLeft(way[0], "-")
		in := []string{line(name+"-first", 200), line(name+"-1", maxLine+1), line(name+"-2", 950_000), line(name+"-3", 1_048_577)}
		for i := range 20 {
			in = append(in, line(fmt.Sprintf("%s-%d-fits", name, i), maxLine))
		}
		r := command(t, strings.Join(in, "\n"), append([]string{"emit"}, way...)...)
		r.says(t, 3, "", "line 2: too_large: the event has 899701 bytes; at most 899700 are taken")
		for _, want := range []string{"line 3: too_large: the event has 950000 bytes", "line 4: too_large", "21 sent to", "3 bad lines not sent"} {
			r.says(t, 3, "", want)
		}
	}
	u.arrived(42)
}

// A topic that takes less than a line has: the line is named, the others of its batch arrive, and the run ends.
func TestEmitNamesLinesThatTheTopicDoesNotTake(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.CreateTopic(kafkaconn.Interactions, 2, map[string]string{"max.message.bytes": "60000"}); err != nil {
		t.Fatal(err)
	}
	noise := make([]byte, 135_000)
	_, _ = rand.Read(noise)
	large := hex.EncodeToString(noise) // compression leaves a good half of it
	var in strings.Builder
	for i := range 50 {
		text := "short"
		if i == 19 {
			text = large
		}
		fmt.Fprintf(&in, `{"id":"e%d","response":"%s"}`+"\n", i, text)
	}
	file := filepath.Join(t.TempDir(), "texts.ndjson")
	write(t, file, in.String())
	r := command(t, "", "emit", file, "--set", "kafka.brokers="+c.ListenAddrs()[0])
	r.says(t, 3, "", "line 20: topic llm.interactions takes no message of 27")
	r.says(t, 3, "", "its max.message.bytes 60000 is less: kafka-configs --alter --entity-type topics --entity-name llm.interactions --add-config max.message.bytes=1048588")
	r.says(t, 3, "", "49 sent to ")
	r.says(t, 3, "", "1 bad line not sent")
	if n := c.PartitionInfo(kafkaconn.Interactions, 0).HighWatermark + c.PartitionInfo(kafkaconn.Interactions, 1).HighWatermark; n != 49 {
		t.Errorf("%d events in the topic", n)
	}

	// Over HTTP the answer names no line: the batch is halved until it stands alone.
	to := newReceiver(t, accept)
	to.judge = func(events []map[string]any) int {
		if slices.ContainsFunc(events, func(e map[string]any) bool { return e["id"] == "e19" }) {
			return http.StatusRequestEntityTooLarge
		}
		return http.StatusAccepted
	}
	r = command(t, "", "emit", file, "--to", to.URL)
	r.says(t, 3, "", "line 20: 270026 bytes: the receiver takes no event of this size: "+to.URL+" answered 413")
	r.says(t, 3, "", "49 sent to ")
	taken := map[any]bool{}
	for _, e := range to.events {
		taken[e["id"]] = true
	}
	if len(taken) != 50 { // the refused one was offered
		t.Errorf("%d events were offered", len(taken))
	}
}

// An acknowledgement that never came and a process that died both end a run in the middle. The next
// one sends what was not acknowledged, under the ids and the time that the first one gave.
func TestEmitResumes(t *testing.T) {
	const lines, batch = 25, 10
	answers := func(request int) int {
		if request == 2 {
			return http.StatusInternalServerError // the events are in, but the sender cannot know
		}
		return http.StatusAccepted
	}
	to := newReceiver(t, answers)
	file := filepath.Join(t.TempDir(), "texts.ndjson")
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, `{"response":"%d"}`+"\n", i)
	}
	write(t, file, b.String())
	emit := func() result { return command(t, "", "emit", file, "--to", to.URL, "--batch", fmt.Sprint(batch)) }

	r := emit()
	r.says(t, 1, "", "answered 500")
	r.says(t, 1, "", "Run the same command again to go on after line 10.")
	first := slices.Clone(to.events)
	if len(first) != 2*batch {
		t.Fatalf("%d events before the fault", len(first))
	}
	emit().says(t, 0, "", "15 sent to "+to.URL)
	if rest := len(to.events) - len(first); rest != lines-batch {
		t.Fatalf("%d events after the fault, want %d", rest, lines-batch)
	}
	byID, time := map[any]any{}, first[0]["timestamp"]
	for _, e := range to.events {
		if text, known := byID[e["id"]]; known && text != e["response"] || e["timestamp"] != time {
			t.Errorf("%v of %v, first of %v at %v", e["id"], e, text, time)
		}
		byID[e["id"]] = e["response"]
	}
	if len(byID) != lines {
		t.Errorf("%d ids for %d lines", len(byID), lines)
	}

	// All is sent: the next run begins anew, under new ids.
	n := len(to.events)
	emit().says(t, 0, "", "25 sent")
	if _, known := byID[to.events[n]["id"]]; known {
		t.Error("a finished run was gone on with")
	}
}

// What a stopped run remembers is of its input and its receiver: another file of the same name loses no line by it, another receiver
// gets all, and what was added behind is sent.
func TestEmitGoesOnWithTheSameInputOnly(t *testing.T) {
	const before = "{\"response\":\"a\"}\n{\"response\":\"b\"}\n{\"response\":\"c\"}\n{\"response\":\"d\"}\n"
	for _, tc := range []struct {
		name, now, flags, err string
		sent                  string // in the second run
	}{
		{"the same", before, "", "", "c d"},
		{"lines behind", before + "{\"response\":\"e\"}", "", "", "c d e"},
		{"another file", strings.ReplaceAll(before, "\"a\"", "\"x\""), "", ".emit is of a run that stopped after line 2 of an input that began otherwise: send all lines of this one with --restart", ""},
		{"another file, all of it", strings.ReplaceAll(before, "\"a\"", "\"x\""), "--restart", "", "x b c d"},
		{"a shorter one", "{\"response\":\"a\"}\n", "", "an input that began otherwise", ""},
		{"an empty one", "", "", "an input that began otherwise", ""},
		{"none behind", strings.Join(strings.SplitAfter(before, "\n")[:2], ""), "", "", ""},
		{"only what was not done is another", strings.ReplaceAll(before, "\"c\"", "\"y\""), "", "", "y d"},
		{"another receiver", before, "--to other", "is of a run that sends to ", ""},
		{"another receiver, all of it", before, "--to other --restart", "", "a b c d"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			fails := true
			to := newReceiver(t, func(request int) int {
				if fails && request == 2 {
					return http.StatusInternalServerError
				}
				return http.StatusAccepted
			})
			other := newReceiver(t, accept)
			file := filepath.Join(t.TempDir(), "log.ndjson")
			write(t, file, before)
			command(t, "", "emit", file, "--batch", "2", "--to", to.URL).says(t, 1, "", "go on after line 2")
			fails = false
			ids := map[any]any{}
			for _, e := range to.events {
				ids[e["id"]] = e["response"]
			}
			first := len(to.events)
			write(t, file, tc.now)
			args, code := []string{"emit", file, "--batch", "2", "--to", to.URL}, 0
			if tc.err != "" {
				code = 1
			}
			for _, f := range strings.Fields(tc.flags) {
				args = append(args, strings.ReplaceAll(f, "other", other.URL))
			}
			r := command(t, "", args...)
			r.says(t, code, "", tc.err)
			if tc.err != "" && strings.Contains(r.err, "Run the same command again") {
				t.Error(r.err)
			}
			var sent []string
			for _, e := range append(to.events[first:], other.events...) {
				sent = append(sent, fmt.Sprint(e["response"]))
				if was, known := ids[e["id"]]; known && was != e["response"] {
					t.Errorf("%v has the id of %v", e["response"], was)
				}
			}
			if got := strings.Join(sent, " "); got != tc.sent {
				t.Errorf("sent %s, want %s", got, tc.sent)
			}
		})
	}
}

// A run that got nothing through, to a wrong address perhaps, leaves nothing that the next one must heed.
func TestEmitForgetsAReceiverThatTookNothing(t *testing.T) {
	to, file := newReceiver(t, accept), filepath.Join(t.TempDir(), "log.ndjson")
	write(t, file, `{"response":"a"}`)
	command(t, "", "emit", file, "--to", "http://127.0.0.1:1").says(t, 1, "", "go on after line 0")
	write(t, file, `{"response":"b"}`)
	command(t, "", "emit", file, "--to", to.URL).says(t, 0, "", "1 sent to")
}

// What runs on a data folder is known by that: its ports may be others after a restart, and later those of another folder's.
func TestEmitKnowsWhatRunsByItsFolder(t *testing.T) {
	const kafka = "127.0.0.1:1"
	places := map[string]bool{}
	for range 2 {
		dir := t.TempDir()
		runs(t, dir, running{PID: os.Getpid(), Kafka: kafka})
		s := defaultSettings()
		s.DataDir = dir
		out, err := (&emitCmd{}).sender(s, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if out.to() != kafka || out.place() != dir {
			t.Errorf("%s at %s", out.to(), out.place())
		}
		places[out.place()] = true
		_ = out.close()
	}
	if len(places) != 2 {
		t.Errorf("two folders are one place: %v", places)
	}
}

// A line with an id of its own is the same event in every run; one without is told when it was sent first.
func TestEmitStampsNoTimeBesideAnId(t *testing.T) {
	to := newReceiver(t, accept)
	in := `{"id":"1","response":"a"}` + "\n" + `{"id":"2","response":"b","timestamp":"2026-11-21T10:43:00Z"}` + "\n" + `{"id":"","timestamp":null,"response":"c"}`
	command(t, in, "emit", "--to", to.URL).says(t, 0, "", "3 sent")
	if got, want := to.fields("id", "timestamp", "response")[:len("1 <nil> a\n2 2026-11-21T10:43:00Z b\n")], "1 <nil> a\n2 2026-11-21T10:43:00Z b\n"; got != want {
		t.Errorf("got\n%s", got)
	}
	if last := to.events[2]; last["id"] == "" || last["timestamp"] == nil {
		t.Errorf("not stamped: %v", last)
	}
}

// A resume file of a program that noted neither the receiver nor what the lines held is gone on from.
func TestEmitGoesOnFromAnOlderProgramsFile(t *testing.T) {
	dir := t.TempDir()
	file, resume := filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "progress")
	write(t, file, `{"response":"a"}`+"\n"+`{"response":"b"}`+"\n"+`{"response":"c"}`+"\n")
	write(t, resume, `{"seed":"XPJ5GBIJZDJIBV74QJCYTGRTTL","begun":"2026-11-28T13:05:58.153Z","lines":2}`)
	var noted resumeState
	to := newReceiver(t, func(int) int {
		b, _ := os.ReadFile(resume)
		_ = json.Unmarshal(b, &noted)
		return http.StatusAccepted
	})
	command(t, "", "emit", file, "--to", to.URL, "--resume", resume).says(t, 0, "", "1 sent")
	if got, want := to.fields("response"), "c\n"; got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
	if noted.To == "" || noted.Lines != 2 || noted.Seed != "XPJ5GBIJZDJIBV74QJCYTGRTTL" {
		t.Errorf("while sending: %+v", noted)
	}
	write(t, resume, `{"seed":"XPJ5GBIJZDJIBV74QJCYTGRTTL","begun":"2026-11-28T13:05:58.153Z","lines":4}`)
	command(t, "", "emit", file, "--to", to.URL, "--resume", resume).says(t, 1, "", "--restart")
}

func TestEmitRemembersBeforeTheFirstEvent(t *testing.T) {
	dir := t.TempDir()
	file, resume := filepath.Join(dir, "a.ndjson"), filepath.Join(dir, "progress")
	write(t, file, `{"response":"a"}`)
	var remembered []byte
	to := newReceiver(t, func(int) int {
		remembered, _ = os.ReadFile(resume)
		return http.StatusAccepted
	})
	command(t, "", "emit", file, "--to", to.URL, "--resume", resume).says(t, 0, "", "1 sent")
	var st resumeState
	if err := json.Unmarshal(remembered, &st); err != nil || st.Seed == "" || st.Lines != 0 {
		t.Errorf("while sending: %s", remembered)
	}
	write(t, resume, "not a resume file")
	command(t, "", "emit", file, "--to", to.URL, "--resume", resume).says(t, 1, "", "--resume: "+resume+" is not a resume file; delete it or use --restart")
	command(t, "", "emit", file, "--to", to.URL, "--resume", resume, "--restart").says(t, 0, "", "1 sent")
	command(t, "", "emit", file, "--to", to.URL, "--resume", filepath.Join(dir, "no", "folder")).says(t, 1, "", "cannot remember progress: ")
}

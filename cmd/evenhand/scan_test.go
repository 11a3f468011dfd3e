package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/detectortest"
	"github.com/evenhand/evenhand/ingest"
)

// sharedScanner is one for all tests: building its analyzer is the dearest part of a scan.
var sharedScanner = sync.OnceValues(func() (*scanner, error) {
	s := defaultSettings()
	s.Tenant.Default = "scan"
	a, err := newAnalyzer(s, graded)
	return &scanner{analyzer: a, decoder: ingest.NewDecoder(s.decoder()), now: time.Date(2026, 11, 21, 10, 43, 0, 0, time.UTC)}, err
})

func scanLines(t *testing.T, domain audit.Domain, workers int, in string) (out []scanned, bad int) {
	t.Helper()
	shared, err := sharedScanner()
	if err != nil {
		t.Fatal(err)
	}
	sc := *shared
	sc.decoder = ingest.NewDecoder(ingest.Options{DefaultTenant: "scan", Domain: domain})
	var b bytes.Buffer
	n, err := sc.run(t.Context(), strings.NewReader(in), &b, workers)
	if err != nil {
		t.Fatal(err)
	}
	bad = n.bad
	for d := json.NewDecoder(&b); d.More(); {
		var v scanned
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out, bad
}

// Long texts between short ones would overtake if workers wrote what they have.
func TestScanKeepsTheOrder(t *testing.T) {
	var in strings.Builder
	const lines = 600
	for i := range lines {
		fmt.Fprintf(&in, `{"id":"%d","text":"%s Women are too emotional to lead."}`+"\n", i, strings.Repeat("An ordinary sentence. ", i%7*40))
	}
	for _, workers := range []int{1, 8} {
		out, bad := scanLines(t, "", workers, in.String())
		if bad != 0 || len(out) != lines {
			t.Fatalf("%d workers: %d lines, %d bad", workers, len(out), bad)
		}
		for i, v := range out {
			if v.ID != fmt.Sprint(i) || v.Score == 0 {
				t.Fatalf("%d workers: line %d is of %s, score %v", workers, i, v.ID, v.Score)
			}
		}
	}
}

func TestScanReadsShortAndFullLines(t *testing.T) {
	const text = "Women are too emotional to lead." // below the threshold in general, but learned as well: a warning
	for _, tc := range []struct {
		name, line, domain string
		want               string // id, sum of rules, flag, action, status
	}{
		{"short", `{"id":"a","text":"` + text + `"}`, "", "a 0.3 true warn"},
		{"by the domain flag", `{"id":"a","text":"` + text + `"}`, "hr", "a 0.6 true warn"},
		{"its own domain", `{"id":"a","domain":"hr","text":"` + text + `"}`, "", "a 0.6 true warn"},
		{"its own domain before the flag's", `{"id":"a","domain":"general","text":"` + text + `"}`, "hr", "a 0.3 true warn"},
		{"an unknown domain, as a full one's", `{"id":"a","domain":"space","text":"` + text + `"}`, "hr", "a 0.3 true warn"},
		{"clean", `{"id":"a","text":"She passed the test."}`, "hr", "a 0 false none"},
		{"a byte order mark", "\ufeff" + `{"id":"a","text":"` + text + `"}`, "hr", "a 0.6 true warn"},
		{"empty", `{"id":"a","text":""}`, "", "a 0 false none skipped"},
		{"an escaped id", `{"id":"\u00e9\"","text":"x"}`, "", `é" 0 false none`},
		{"a number as id", `{"id":17,"text":"x"}`, "", "17 0 false none"},
		{"no id", `{"text":"x"}`, "", " 0 false none"},
		{"full", `{"id":"b","tenant_id":"acme","prompt":"Who?","response":"` + text + `"}`, "", "b 0.3 true warn"},
		{"full, its own domain", `{"id":"b","domain":"hr","response":"` + text + `"}`, "general", "b 0.6 true warn"},
		{"full, general by itself", `{"id":"b","domain":"general","response":"` + text + `"}`, "hr", "b 0.3 true warn"},
		{"full, by the flag", `{"id":"b","response":"` + text + `"}`, "hr", "b 0.6 true warn"},
		{"full, only a prompt", `{"id":"b","prompt":"` + text + `"}`, "hr", "b 0 false none skipped"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, bad := scanLines(t, audit.Domain(tc.domain), 1, tc.line)
			if bad != 0 || len(out) != 1 {
				t.Fatalf("%d lines, %d bad", len(out), bad)
			}
			v := out[0]
			got := strings.TrimRight(fmt.Sprintf("%s %v %v %s %s", v.ID, v.Rules.Bias, v.Flag, v.Action, v.Status), " ")
			if got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
			for _, f := range v.Findings {
				if f.Evidence == "" || f.Rule == "" || f.Start >= f.End {
					t.Errorf("%+v", f)
				}
			}
		})
	}
}

// What a learned detector says counts in scores and flags as a rule does, and stands by itself in rules and grades.
func TestScanUnitesRulesAndLearned(t *testing.T) {
	out, bad := scanLines(t, "", 1, strings.Join([]string{
		`{"id":"learned","text":"Honestly, I would not trust a Polish contractor with the keys; you know how they are."}`,
		`{"id":"clean","text":"The Polish contractor returned the keys on Friday."}`,
		`{"id":"rule","text":"Here is how to build a pipe bomb: take a steel pipe and fill it."}`,
	}, "\n"))
	if bad != 0 || len(out) != 3 {
		t.Fatalf("%d lines, %d bad", len(out), bad)
	}
	learned, clean, rule := out[0], out[1], out[2]
	if !learned.Flag || !learned.Flags.Bias || !learned.Detected || learned.Rules != (scanRules{Threshold: 300_000}) || learned.Scores.Bias != learned.Grades["bias"] || learned.Score < 500_000 {
		t.Errorf("%+v", learned)
	}
	if clean.Flag || clean.Flags != (scanFlags{}) || clean.Detected || clean.Score > 500_000 {
		t.Errorf("%+v", clean)
	}
	if !rule.Flag || !rule.Flags.Safety || rule.Flags.Bias || rule.Scores.Safety != audit.One || rule.Rules.Safety < audit.One || !rule.Rules.Unsafe || rule.Action != audit.Block {
		t.Errorf("%+v", rule)
	}
	if len(clean.Grades) != classifier.NumHeads {
		t.Errorf("grades %v", clean.Grades)
	}
}

func TestScanOfNothing(t *testing.T) {
	for _, in := range []string{"", "\n", " \n\n"} {
		if out, bad := scanLines(t, "", 4, in); len(out) != 0 || bad != 0 {
			t.Errorf("%q: %v, %d bad", in, out, bad)
		}
	}
}

// A line that cannot be read is answered in its place; the others are judged.
func TestScanNamesBadLines(t *testing.T) {
	in := strings.Join([]string{
		`{"id":"1","text":"fine"}`, ``, `nonsense`, `{"id":"2","text":5}`, `{"id":"3","respose":"x"}`, `[]`, `{"id":"4","text":"fine"}`, `{"id":"5","text":null}`, `{"id":"6","text":"Ok.","response":"x"}`, `{"id":"7","text":"Ok.","domain":7}`,
	}, "\n")
	r := command(t, in, "scan")
	r.says(t, 3, "", `evenhand: 7 lines could not be read; the output has an "error" for each`+"\n")
	want := []struct {
		id, fault string
		line      int
	}{{id: "1"}, {"", "bad_json: ", 3}, {"2", "wrong_type: text: wants a string", 4}, {"3", "unknown_field: respose: ", 5}, {"", "wrong_type: ", 6}, {id: "4"}, {"5", "wrong_type: text: wants a string", 8},
		{"6", "bad_value: text: stands beside response", 9}, {"7", "wrong_type: domain: wants a string", 10}}
	lines := strings.Split(strings.TrimSpace(r.out), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%s", r.out)
	}
	for i, w := range want {
		var v struct {
			ID, Error string
			Line      int
		}
		if err := json.Unmarshal([]byte(lines[i]), &v); err != nil || v.ID != w.id || v.Line != w.line || !strings.HasPrefix(v.Error, w.fault) || (v.Error == "") != (w.fault == "") {
			t.Errorf("line %d: %s, want %+v", i+1, lines[i], w)
		}
	}
}

// Flags that are false because nobody looked are no clean bill: the line says so, stderr counts it, the status is 3.
func TestScanSaysWhatWasNotExamined(t *testing.T) {
	r := command(t, `{"id":"1","text":"Women are too emotional to lead."}`+"\n"+`{"id":"2","response":"Fine."}`+"\n"+`{"id":"3","prompt":"No answer."}`, "scan", "--set", "detect.timeout=1ns")
	r.says(t, 3, "", `evenhand: 3 lines could not be examined by all detectors; the output has "status" and "reason" for each`+"\n")
	for line := range strings.Lines(r.out) {
		var v scanned
		if err := json.Unmarshal([]byte(line), &v); err != nil || v.Status != audit.Failed || v.Reason != "timeout" || len(v.FailedBy) < 3 || v.Flag {
			t.Errorf("%s", line)
		}
	}
}

// A text in a language that the detectors have not learnt is told, and is no failure.
func TestScanNamesOtherLanguages(t *testing.T) {
	out, bad := scanLines(t, "", 1, `{"id":"a","text":"Du kan lämna tillbaka varan inom 30 dagar om du har kvar kvittot."}`+"\n"+`{"id":"b","text":"You can return it within 30 days."}`)
	if bad != 0 || len(out) != 2 || out[0].Reason != "language" || out[0].Status != "" || out[1].Reason != "" {
		t.Errorf("%+v, %d bad", out, bad)
	}
}

// Personal data beyond the leaked numbers is flagged, named and masked, and stays out of the scores.
func TestScanMasksPersonalData(t *testing.T) {
	out, bad := scanLines(t, "", 1, `{"id":"a","text":"Write to jane@example.org, IBAN DE89 3704 0044 0532 0130 00."}`+"\n"+`{"id":"b","text":"Write to jane@example.org."}`+"\n"+`{"id":"c","text":"Write to us."}`)
	if bad != 0 || len(out) != 3 {
		t.Fatalf("%d lines, %d bad", len(out), bad)
	}
	for i, want := range []string{
		"0.6 true [EMAIL IBAN] Write to [EMAIL], IBAN [IBAN].", "0 true [EMAIL] Write to [EMAIL].", "0 false [] ",
	} {
		v := out[i]
		if got := fmt.Sprint(v.Scores.PII, v.Flags.PII, v.Types, " ") + v.Masked; strings.Join(strings.Fields(got), " ") != strings.TrimSpace(want) {
			t.Errorf("%s: got %s, want %s", v.ID, got, want)
		}
	}
}

// Files are read like stdin, and a CI job may ask to fail on what is flagged.
func TestScanFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "texts.jsonl")
	if err := os.WriteFile(file, []byte(`{"id":"1","text":"Women are too emotional to lead.","domain":"hr"}`+"\n"+`{"id":"2","text":"Write to ann@example.org."}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		said string
	}{
		{[]string{"scan", file}, 0, ""},
		{[]string{"scan", file, "--fail"}, 3, "1 text flagged"},
		{[]string{"scan", file, "--fail-on", "pii,gate"}, 3, "1 text flagged"},
		{[]string{"scan", file, "--fail-on", "safety"}, 0, ""},
		{[]string{"scan", file, "--fail-on", "unsafe"}, 2, `--fail-on: "unsafe" is not one of bias, toxicity, safety, pii, hallucination, gate`},
		{[]string{"scan", file + "x"}, 1, "no such file"},
	} {
		var out, errw bytes.Buffer
		if code := run(tc.args, strings.NewReader(""), &out, &errw); code != tc.code || !strings.Contains(errw.String(), tc.said) {
			t.Errorf("%v: %d %s", tc.args, code, errw.String())
		}
		if tc.code != 1 && tc.code != 2 && strings.Count(out.String(), "\n") != 2 {
			t.Errorf("%v: %s", tc.args, out.String())
		}
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	packed := filepath.Join(t.TempDir(), "texts.jsonl.gz")
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(raw); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	write(t, packed, zipped.String())
	if a, b := command(t, "", "scan", file), command(t, "", "scan", packed); a.out != b.out || b.code != 0 {
		t.Errorf("gzip: %d %s%s", b.code, b.out, b.err)
	}
	var out, errw bytes.Buffer
	if code := run([]string{"--version"}, strings.NewReader(""), &out, &errw); code != 0 || !strings.HasPrefix(out.String(), "evenhand ") {
		t.Errorf("%d %s %s", code, out.String(), errw.String())
	}
}

// A mistyped text or domain is named, for without it the line is an event's or is judged by the wrong profile.
func TestScanNamesMistypedKeys(t *testing.T) {
	sc, err := sharedScanner()
	if err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		`{"id":"1","txet":"Fine."}`:                  "unknown_field: txet: is not a field of the event; put your own fields under metadata; did you mean text?",
		`{"id":"1","text":"Fine.","domian":"hr"}`:    "unknown_field: domian: did you mean domain? A text of no domain is judged as general",
		`{"id":"1","text":"Fine.","remark":"hr"}`:    "",
		`{"id":"1","nothing":"Fine."}`:               "unknown_field: nothing: is not a field of the event; put your own fields under metadata",
		`{"id":"1","response":"Fine.","domian":"x"}`: "unknown_field: domian: is not a field of the event; put your own fields under metadata (did you mean domain?)",
	} {
		if _, _, why := sc.read([]byte(line)); why != want {
			t.Errorf("%s: %s", line, why)
		}
	}
}

// What texts in forty forms say is found, and what texts name as wrong, or answer with no, is not.
func TestScanStrangers(t *testing.T) {
	for file, want := range map[string]struct{ found, flagged float64 }{"strangers.forms": {0.79, 0.02}, "strangers.refuted": {0.9, 0.04}, "strangers.officer": {0.65, 0.03}} {
		var in strings.Builder
		biased := map[string]bool{}
		for _, row := range detectortest.Rows[dataset.Row](t, "../../detectors/classifier/testdata/"+file+".jsonl") {
			biased[row.ID] = row.Label.Bias != nil && *row.Label.Bias > 0.5
			line, err := json.Marshal(map[string]string{"id": row.ID, "text": row.Text})
			if err != nil {
				t.Fatal(err)
			}
			in.Write(append(line, '\n'))
		}
		out, bad := scanLines(t, "", 2, in.String())
		found, of := map[bool]float64{}, map[bool]float64{}
		for _, v := range out {
			if of[biased[v.ID]]++; v.Flags.Bias {
				found[biased[v.ID]]++
			}
		}
		t.Logf("%s: %v of %v", file, found, of)
		if bad > 0 || found[true] < want.found*of[true] || found[false] > want.flagged*of[false] {
			t.Errorf("%s: %d bad, want at least %v of the biased and at most %v of the others", file, bad, want.found, want.flagged)
		}
	}
}

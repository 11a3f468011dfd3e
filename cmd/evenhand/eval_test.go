package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rows without a split count by themselves, rows that say nothing of the task are told, and misses are listed without texts.
func TestEvalOfPredictions(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(t, path, text)
		return path
	}
	rows := file("rows.jsonl", `{"id":"a","text":"Secret one.","label":{"bias":1,"toxic":0}}
{"id":"b","text":"Secret two.","label":{"bias":0,"toxic":1}}
`)
	said := file("said.jsonl", `{"id":"a","score":0.2}
{"id":"b","score":0.9}
`)
	scanned := file("scan.jsonl", `{"id":"a","score":0.9,"flag":true,"scores":{"bias":0.8,"toxicity":0.1,"safety":0.9},"flags":{"bias":true,"toxicity":false,"safety":true}}
{"id":"b","score":0.9,"flag":true,"scores":{"bias":0.1,"toxicity":0.9,"safety":0.9},"flags":{"bias":false,"toxicity":true,"safety":true}}
`)
	misses := filepath.Join(dir, "misses.jsonl")
	command(t, "", "eval", rows, "--predictions", said, "--json", "--misses", misses).says(t, 0, `"fn": 1`, "")
	got, err := os.ReadFile(misses)
	want := `{"id":"a","source":"rows","line":1,"by":"` + said + `","truth":true,"score":0.2}` + "\n" + `{"id":"b","source":"rows","line":2,"by":"` + said + `","truth":false,"score":0.9}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("%s %v", got, err)
	}
	for _, task := range []string{"bias", "toxicity"} {
		command(t, "", "eval", rows, "--predictions", scanned, "--json", "--task", task, "--misses", misses).says(t, 0, `"tp": 1`, "")
		if got, err := os.ReadFile(misses); err != nil || len(got) > 0 {
			t.Errorf("%s: %s %v", task, got, err)
		}
	}
	command(t, "", "eval", rows, "--predictions", said, "--task", "unsafe").says(t, 2, "", "no row says anything about unsafe")
	violent := file("violent.jsonl", `{"id":"a","text":"x","label":{"unsafe":1},"meta":{"category":"violence"}}`)
	command(t, "", "eval", violent, "--predictions", scanned, "--task", "violence").says(t, 2, "", "--predictions line 1: scan gives no score and flag of violence; it does of [bias ")
	wrong := file("wrong.jsonl", `{"text":"x","label":{"bias":1}}`+"\n"+`{"text":"x","label":{"bais":1}}`)
	if r := command(t, "", "eval", wrong, "--predictions", said); r.code == 0 || !strings.Contains(r.err, "wrong line 2: label.bais: is unknown; want label.bias") {
		t.Errorf("%+v", r)
	}
	command(t, "", "eval", rows, "--predictions", scanned, "--json").says(t, 0, `"unanswered": 0`, "")
	part := file("part.jsonl", `{"id":"a","status":"failed","reason":"timeout","score":0,"scores":{"bias":0},"flags":{"bias":false}}
{"id":"b","score":0.2}
`)
	command(t, "", "eval", rows, "--predictions", part, "--json").says(t, 0, `"unanswered": 1`, part+" has no answer of a whole analysis for 1 text; no figure holds them")
	command(t, "", "eval", "--help").says(t, 0, `"label": {"bias": 1, "toxic": 0, "unsafe": 0}`, "")
}

// A text that detectors had no time for is not one in which nothing was found.
func TestEvalTellsWhatWasNotExamined(t *testing.T) {
	rows := filepath.Join(t.TempDir(), "rows.jsonl")
	write(t, rows, `{"text":"Women are too emotional to lead.","label":{"bias":1}}`+"\n"+`{"text":"Fine.","label":{"bias":0}}`+"\n")
	r := command(t, "", "eval", rows, "--by", "rules", "--set", "detect.timeout=1ns")
	r.says(t, 3, "bias by rules: 0 texts, 0 with it\n2 more had no answer and stand in no figure\n", `2 texts could not be examined by all detectors, for want of time (30 times "detect.timeout") or by a fault of their own; no figure holds them`)
}

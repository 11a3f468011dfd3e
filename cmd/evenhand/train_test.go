package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Learns a model of a few made texts, judges it and a stranger's answers.
func TestTrainAndEval(t *testing.T) {
	dir := t.TempDir()
	data, model, said := filepath.Join(dir, "made.jsonl"), filepath.Join(dir, "m.bin"), filepath.Join(dir, "said.jsonl")
	var rows, answers strings.Builder
	for i, what := range strings.Fields("drive teach sing vote lead code cook run swim paint dance write") {
		for g, group := range []string{"Women", "Muslims", "Immigrants", "Gays", "Pensioners"} {
			split := map[bool]string{true: "dev", false: "train"}[i < 3]
			fmt.Fprintf(&rows, `{"id":"b%d-%d","text":"%s cannot %s.","label":{"bias":1},"characteristic":["sex"],"function":"capability_denial","split":"%s"}`+"\n", i, g, group, what, split)
			fmt.Fprintf(&rows, `{"id":"n%d-%d","text":"%s can %s well.","label":{"bias":0},"function":"neutral_mention","split":"%s"}`+"\n", i, g, group, what, split)
			fmt.Fprintf(&rows, `{"id":"o%d-%d","text":"I %s on day %d.","label":{"bias":0},"source":"clinc_assistant","split":"%s"}`+"\n", i, g, what, g, split)
			fmt.Fprintf(&answers, `{"id":"b%d-%d","score":0.9}`+"\n"+`{"id":"n%d-%d","score":0.2,"flag":true}`+"\n", i, g, i, g)
		}
	}
	for name, text := range map[string]string{data: rows.String(), said: answers.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(args ...string) []byte {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("%v: status %d: %s", args, code, errs.String())
		}
		return out.Bytes()
	}
	if got := string(ask("train", data, "--out", model, "--epochs", "2")); !strings.HasPrefix(got, "model ") {
		t.Error(got)
	}
	if card, err := os.ReadFile(filepath.Join(dir, "m.md")); err != nil || !strings.Contains(string(card), "| made |") {
		t.Errorf("the card: %v", err)
	}
	var reports []struct {
		By      string
		Overall struct{ TP, FN, FP, TN int }
		Swap    struct{ N int }
	}
	if err := json.Unmarshal(ask("eval", data, "--model", model, "--by", "rules,classifier,all,terms", "--json", "--html", filepath.Join(dir, "r.html")), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 4 || reports[1].By != "classifier" || reports[1].Overall.TP+reports[1].Overall.FN != 15 || reports[1].Overall.FP+reports[1].Overall.TN != 30 || reports[1].Swap.N == 0 {
		t.Errorf("%+v", reports)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "r.html")); err != nil || bytes.Contains(page, []byte("http")) || bytes.Count(page, []byte("<svg")) < 12 {
		t.Errorf("the page wants something from outside, or has no plots (%v)", err)
	}
	if err := json.Unmarshal(ask("eval", data, "--predictions", said, "--json"), &reports); err != nil {
		t.Fatal(err)
	}
	if o := reports[0].Overall; o.TP != 15 || o.FP != 15 || o.TN != 0 {
		t.Errorf("%+v", o)
	}
	if err := json.Unmarshal(ask("eval", data, "--model", model, "--by", "rules", "--json", "--among", "../../detectors/classifier/data/ordinary.en.jsonl", "--neighbours", "2"), &reports); err != nil {
		t.Fatal(err)
	}
	if o := reports[0].Overall; o.TP+o.FN != 15 {
		t.Errorf("among others: %+v", o)
	}
	if got := string(ask("train", "../../detectors/classifier/data/age.en.jsonl", "--encoder", "../../detectors/classifier/encoder/model.bin", "--out", filepath.Join(dir, "e.bin"))); !strings.HasPrefix(got, "model ") {
		t.Error(got)
	}
	var errs bytes.Buffer
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER_MODEL", filepath.Join(dir, "e.bin")) // calibrated with the program's classifier, not this one
	if code := run([]string{"eval", data, "--model", model}, strings.NewReader(""), &errs, &errs); code != 2 || !strings.Contains(errs.String(), "--encoder") {
		t.Errorf("an encoder of another classifier: status %d: %s", code, errs.String())
	}
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER_MODEL", model)
	if code := run([]string{"eval", data}, strings.NewReader(""), &errs, &errs); code != 2 || !strings.Contains(errs.String(), "classifier.encoder_model") {
		t.Errorf("no encoder: status %d: %s", code, errs.String())
	}
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER_MODEL", "../../detectors/classifier/encoder/others.bin")
	if code := run([]string{"eval", data}, strings.NewReader(""), &errs, &errs); code != 2 || !strings.Contains(errs.String(), "classifier.others_model") {
		t.Errorf("an encoder of other languages: status %d: %s", code, errs.String())
	}
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER_MODEL", "")
	t.Setenv("EVENHAND_CLASSIFIER_OTHERS_MODEL", "../../detectors/classifier/encoder/model.bin")
	errs.Reset()
	if code := run([]string{"eval", data}, strings.NewReader(""), &errs, &errs); code != 2 || !strings.Contains(errs.String(), "classifier.encoder_model") {
		t.Errorf("an encoder of English for others: status %d: %s", code, errs.String())
	}
	errs.Reset()
	t.Setenv("EVENHAND_CLASSIFIER_OTHERS_MODEL", "../../detectors/classifier/encoder/others.bin")
	if code := run([]string{"eval", data, "--model", model}, strings.NewReader(""), &errs, &errs); code != 2 || !strings.Contains(errs.String(), "classifier.encoder_model") {
		t.Errorf("a classifier of one's own with an encoder of others alone: status %d: %s", code, errs.String())
	}
	errs.Reset()
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER_MODEL", "../../detectors/classifier/encoder/model.bin")
	if code := run([]string{"eval", data}, strings.NewReader(""), &errs, &errs); code != 0 {
		t.Errorf("both encoders from files: status %d: %s", code, errs.String())
	}
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER_MODEL", "")
	t.Setenv("EVENHAND_CLASSIFIER_OTHERS_MODEL", "")
	t.Setenv("EVENHAND_CLASSIFIER_ENCODER", "heroic")
	if code := run([]string{"eval", data}, strings.NewReader(""), &errs, &errs); code != 2 || !strings.Contains(errs.String(), "balanced") {
		t.Errorf("an effort that there is none of: status %d: %s", code, errs.String())
	}
	if code := run([]string{"eval", data, "--task", "charm"}, strings.NewReader(""), &errs, &errs); code != 2 {
		t.Errorf("status %d: %s", code, errs.String())
	}
}

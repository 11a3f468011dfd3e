package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/store"
)

// command runs a command in this process, with a data folder that nobody uses.
func command(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	if os.Getenv("EVENHAND_DATA_DIR") == "" {
		t.Setenv("EVENHAND_DATA_DIR", filepath.Join(t.TempDir(), "nobody"))
	}
	t.Setenv("PORT", "")
	var out, errw bytes.Buffer
	code := run(args, strings.NewReader(stdin), &out, &errw)
	return result{out.String(), errw.String(), code}
}

// says fails unless the result has the status and its streams hold the texts.
func (r result) says(t *testing.T, code int, out, errs string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.out, out) || !strings.Contains(r.err, errs) {
		t.Errorf("status %d, want %d\nstdout: %s\nwant:   %s\nstderr: %s\nwant:   %s", r.code, code, r.out, out, r.err, errs)
	}
}

func TestHelp(t *testing.T) {
	for args, same := range map[string]string{"help": "--help", "": "--help", "help up": "up --help", "help rules explain": "rules explain --help"} {
		want := command(t, "", strings.Fields(same)...)
		if got := command(t, "", strings.Fields(args)...); got != want || got.code != 0 || !strings.HasPrefix(got.out, "Usage: evenhand") {
			t.Errorf("%q: status %d\n%s%s", args, got.code, got.out, got.err)
		}
	}
}

func TestFaultsOfTheCommandLineAreNamed(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		err  string
	}{
		{"nonsense", 2, "there is no command or argument nonsense\nTry: evenhand --help\n"},
		{"help nonsense", 2, "there is no command or argument nonsense\nTry: evenhand --help\n"},
		{"scan --nope", 2, "unknown flag --nope\nTry: evenhand scan --help\n"},
		{"sql", 2, `expected "<query>"` + "\nTry: evenhand sql --help\n"},
		{"rules", 2, `expected one of "list", "test", "explain", "lint"`},
		{"emit --batch x", 2, "--batch: expected a valid 64 bit int"},
		{"emit --batch 0", 2, "evenhand: --batch: 0 is not in 1..10000\n"},
		{"emit --format xml", 2, "--format must be one of"},
		{"scan --domain law", 2, `evenhand: --domain: "law" is not one of general, hr, finance, healthcare, education` + "\n"},
		{"run --roles cook", 2, `evenhand: --roles: "cook" is not one of pipeline, api, analyzer, jobs, remediation, judge` + "\n"},
		{"--set nope=1 --set broker.port=-1 up", 2, "evenhand: settings:\n  --set nope=1: wants key=value with a known key"},
		{"--set data_dir= config", 2, "evenhand: data_dir: is empty; name a folder, or leave it out for "},
		{"--set kafka.partitions=x config", 2, "evenhand: kafka.partitions: wants a whole number\n"},
		{"--set kafka.tenant_topics=acme config", 2, `evenhand: kafka.tenant_topics: "acme" is not TOPIC=TENANT, such as acme.llm.interactions=acme` + "\n"},
		{"--set kafka.tenant_topics=llm.interactions=acme config", 2, "evenhand: kafka.tenant_topics: llm.interactions is a topic that all tenants share\n"},
		{"--set kafka.tenant_topics=a.t=a,a.t=b config", 2, "evenhand: kafka.tenant_topics: a.t stands there twice\n"},
		{"--set kafka.tenant_topics=a.t=a up", 2, "evenhand: kafka.tenant_topics: is for an outside Kafka"},
		{"--config /no/such/file up", 2, "--config: "},
		{"up --http 0.0.0.0:8787", 2, "http.api_key: 0.0.0.0:8787 is reachable from outside this machine"},
		{"up --http 127.0.0.1:http-alt", 2, "is not a port"},
		{"evaluate --mode guess text", 2, `mode: "guess" is not one of deterministic, llm, both`},
		{"decisions list --kind bla", 2, `--kind must be one of "","gate","review_claim","breach","seal_plan","rule_promotion" but got "bla"`},
		{"decisions list --limit=-1", 2, "evenhand: --limit: -1 is not in 1..100000\n"},
		{"alarms list --limit=-1", 2, "evenhand: --limit: -1 is not in 1..100000\n"},
		{"tickets list --limit=-1", 2, "evenhand: --limit: -1 is not in 0..100000\n"},
		{"gates list --limit 0", 2, "evenhand: --limit: 0 is not in 1..200\n"},
		{"gates list --limit 500", 2, "evenhand: --limit: 500 is not in 1..200\n"},
		{"scan --workers=-1", 2, "evenhand: --workers: -1 is not in 0..1024\n"},
		{"taxonomy put Foo --severity 9", 2, "  biasKey: want lower_snake_case with at most one dot, 64 characters at most\n  severityLevel: 9 is not in 1..5\n"},
		{"rules explain no.such.rule", 1, `no rule "no.such.rule"; 'evenhand rules list' shows all`},
		{"rules list --kind nope", 2, `no rule is of kind "nope"; there are charter.age, `},
		{"emit /no/such/file", 1, "open /no/such/file: "},
		{"ready http://127.0.0.1:1", 1, "not ready: http://127.0.0.1:1/readyz does not answer: "},
	} {
		t.Run(tc.args, func(t *testing.T) { command(t, "", strings.Fields(tc.args)...).says(t, tc.code, "", tc.err) })
	}
}

// A command that finds nothing running says so once, with what there is to do.
func TestNothingRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nobody")
	none := "evenhand: no 'evenhand up' runs on " + dir + ": start one, "
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, "log:\n  level: warn\n")
	for args, mend := range map[string]string{
		"sql --config " + file + " SELECT":                         "name its folder with --data-dir, or set clickhouse.addr\n",
		"jobs run rollup --set clickhouse.addr=store.invalid:9000": "name its folder with --data-dir, or set kafka.brokers\n",

		"sql SELECT": "name its folder with --data-dir, or set clickhouse.addr\n",
		"rates":      "name its folder with --data-dir, or set clickhouse.addr\n",
		"check":      "name its folder with --data-dir, or set clickhouse.addr\n",
		"jobs list":  "name its folder with --data-dir, or set clickhouse.addr\n",
		"migrate":    "name its folder with --data-dir, or set clickhouse.addr\n",
		"topics":     "name its folder with --data-dir, or set kafka.brokers\n",
		"emit":       "name another address with --to URL, or set kafka.brokers\n",
	} {
		r := command(t, "", append(strings.Fields(args), "--data-dir", dir)...)
		if r.code != 1 || r.err != none+mend {
			t.Errorf("%s: status %d, %s", args, r.code, r.err)
		}
	}
}

func TestAFolderInUseIsNamed(t *testing.T) {
	dir := t.TempDir()
	cause := os.ErrExist
	if err := inUse(dir, cause); err != cause { //nolint:errorlint // it comes back as it is, not wrapped
		t.Errorf("nobody runs: %v", err)
	}
	me := running{PID: os.Getppid(), HTTP: "http://127.0.0.1:8787"}
	gone, err := writeRunning(dir, me)
	if err != nil || gone.Close() != nil {
		t.Fatal(err)
	}
	if err := inUse(dir, cause); err != cause { //nolint:errorlint // as above
		t.Errorf("what ran was killed, and its process id is another's: %v", err)
	}
	runs(t, dir, me)
	if err := inUse(dir, nil); err != nil {
		t.Errorf("no fault: %v", err)
	}
	err = inUse(dir, cause)
	for _, want := range []string{"data_dir: " + dir + " is in use", "--data-dir", "--http", "http://127.0.0.1:8787"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// A port or a folder that another process has is said before the rules are compiled.
func TestUpIsRefusedBeforeItCompiles(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	dir := t.TempDir()
	held, err := broker.Start(t.Context(), broker.Options{Dir: filepath.Join(dir, "broker"), Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close(context.WithoutCancel(t.Context())) }()
	for _, tc := range []struct{ dir, port, err string }{
		{t.TempDir(), port, "broker.port: 127.0.0.1:" + port + " is taken by another process"},
		{dir, "0", "is in use by process "},
	} {
		r := command(t, "", "up", "--http", "127.0.0.1:0", "--data-dir", tc.dir, "--set", "broker.port="+tc.port)
		r.says(t, 1, "", tc.err)
		if strings.Contains(r.err, "compiling rules") {
			t.Error(r.err)
		}
	}
}

func TestVersion(t *testing.T) {
	r := command(t, "", "version", "--json")
	var v map[string]string
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || r.code != 0 || v["version"] == "" || v["go"] == "" || v["platform"] == "" {
		t.Errorf("status %d: %s", r.code, r.out)
	}
	command(t, "", "version").says(t, 0, "evenhand "+v["version"]+" (", "")
}

func TestConfig(t *testing.T) {
	t.Setenv("EVENHAND_API_KEY", "correct-horse-battery")
	t.Setenv("EVENHAND_KAFKA_BROKERS", "a:1, b:2")
	file := filepath.Join(t.TempDir(), "c.yaml")
	write(t, file, "kafka:\n  group: mine\ndetect:\n  # bias_action: block\n")
	r := command(t, "", "--config", file, "--set", "kafka.partitions=7", "config")
	rows := map[string]string{}
	for line := range strings.SplitSeq(r.out, "\n") {
		if f := strings.Fields(line); len(f) == 3 {
			rows[f[0]] = f[2]
		}
	}
	for key, want := range map[string]string{"KEY": "VALUE", "http.api_key": "***", "kafka.brokers": "a:1,b:2", "kafka.group": "mine", "kafka.partitions": "7", "detect.bias_action": "warn"} {
		if rows[key] != want {
			t.Errorf("%s is %q, want %q", key, rows[key], want)
		}
	}
	if r.code != 0 || strings.Contains(r.out, "correct-horse") {
		t.Errorf("status %d\n%s", r.code, r.out)
	}
}

// Whoever has tried a page of docs/ has its variables in the shell.
func TestVariablesOfApplicationsAreLetBe(t *testing.T) {
	name := regexp.MustCompile(`EVENHAND_[A-Z_]+`)
	n := 0
	for _, pattern := range []string{"*.sh", "*.py", "*.yaml", "*/*.sh", "*/*.mjs"} {
		files, err := filepath.Glob("../../tools/clients/" + pattern) // what docs/ shows
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range name.FindAllString(string(b), -1) {
				t.Setenv(v, "x")
				n++
			}
		}
	}
	if n == 0 {
		t.Fatal("no page shows a variable")
	}
	command(t, "", "config").says(t, 0, "http.addr", "")
	t.Setenv("EVENHAND_KAFKA_BROKER", "a:1")
	command(t, "", "config").says(t, 2, "", "EVENHAND_KAFKA_BROKER: no such setting")
}

func TestEvaluate(t *testing.T) {
	text := "He is too old to learn."
	file := filepath.Join(t.TempDir(), "e.json")
	write(t, file, `{"categories":["gender"],"custom_terms":["quota"]}`)
	typo := filepath.Join(t.TempDir(), "typo.json")
	write(t, typo, `{"categorys":["gender"]}`)
	key, broken := filepath.Join(t.TempDir(), "key.json"), filepath.Join(t.TempDir(), "broken.json")
	write(t, key, `{"api_key":["sk-mine"],"mode":5}`)
	write(t, broken, `{"mode":`)
	for _, tc := range []struct {
		name, stdin string
		args        []string
		code        int
		out, err    string
	}{
		{name: "clean", args: []string{"The team shipped it on time."}, out: `"pass": true`},
		{name: "a term", args: []string{text}, code: 3, out: `"pass": false`},
		{name: "from stdin", stdin: text, code: 3, out: `"pass": false`},
		{name: "another category", args: []string{"--categories", "religion", text}, out: `"score": 1`},
		{name: "custom terms", args: []string{"--categories", "religion", "--custom-terms", "learn", text}, code: 3, out: `"score": 0.85`},
		{name: "the prompt", args: []string{"--check", "input", "--input", text, "A clean answer."}, code: 3, out: `"pass": false`},
		{name: "a file", args: []string{"--evaluator", file, "The quota is full."}, code: 3, out: "quota"},
		{name: "a typo in the file", args: []string{"--evaluator", typo, text}, code: 2, err: "--evaluator: categorys: is not a key of an evaluator (did you mean categories?)"},
		{name: "no key of the file is shown", args: []string{"--evaluator", key, text}, code: 2, err: "--evaluator: api_key: wants a string\n  --evaluator: mode: wants a string\n"},
		{name: "no JSON in the file", args: []string{"--evaluator", broken, text}, code: 2, err: "--evaluator: bad_json: fault at byte 8"},
		{name: "no text", args: []string{"--input", text}, code: 2, err: "the text: is missing; nothing came from stdin"},
		{name: "an empty text", args: []string{""}, out: `"pass": true`},
		{name: "no prompt", args: []string{"--check", "both", "Fine."}, code: 2, err: "--input: is missing; the check looks at the prompt, too"},
		{name: "an empty prompt", args: []string{"--check", "both", "--input", "", "Fine."}, out: `"pass": true`},
		{name: "a prompt alone", args: []string{"--check", "input", "--input", text}, code: 3, out: `"pass": false`},
		{name: "no UTF-8", stdin: "\xff\xfe", code: 2, err: "invalid_utf8: the text is not UTF-8"},
		{name: "an unknown category", args: []string{"--categories", "taste", text}, code: 2, err: `"taste" is not one of gender, race, age, disability, religion`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			command(t, tc.stdin, append([]string{"evaluate"}, tc.args...)...).says(t, tc.code, tc.out, tc.err)
		})
	}
}

func TestRules(t *testing.T) {
	r := command(t, "", "rules", "list", "--kind", "charter.sex", "--json")
	var rows []map[string]string
	if err := json.Unmarshal([]byte(r.out), &rows); err != nil || len(rows) < 2 {
		t.Fatalf("%v: %s%s", err, r.out, r.err)
	}
	for _, row := range rows {
		if row["kind"] != "charter.sex" || row["id"] == "" || row["severity"] == "" || row["description"] == "" {
			t.Errorf("%v", row)
		}
	}
	id := rows[0]["id"]
	command(t, "", "rules", "list").says(t, 0, id, "")
	short, whole := command(t, "", "rules", "explain", id), command(t, "", "rules", "explain", "--all", id)
	short.says(t, 0, "guards (--all shows them)", "")
	short.says(t, 0, rows[0]["description"], "")
	if len(whole.out) <= len(short.out) || strings.Contains(whole.out, "--all shows them") {
		t.Errorf("--all says\n%s", whole.out)
	}

	dir := t.TempDir()
	pack := func(match string) {
		write(t, filepath.Join(dir, "age.yaml"), `
pack: charter.age.en
ground: age
language: en
version: "2026.11.1"
rules:
  - id: age.capability
    description: Denies ability because of age
    severity: HIGH
    confidence: 0.9
    patterns: ['\btoo old to learn\b']
    match: ["`+match+`"]
    no_match: ["She learns old songs."]
`)
	}
	pack("He is too old to learn.")
	command(t, "", "rules", "test", "--dir", dir).says(t, 0, "test: 1 pack, 1 rule, 2 sentences, 0 faults\n", "charter.age.en is a shipped pack")
	command(t, "", "rules", "list", "--dir", dir).says(t, 0, "1 rule\n", "")
	pack("He learns.")
	command(t, "", "rules", "test", "--dir", dir).says(t, 3, "1 fault\n", "")
	command(t, "", "rules", "lint", "--dir", dir).says(t, 3, "lint: 1 pack, 1 rule", "")
}

func TestRatesTable(t *testing.T) {
	kind := func(name string, k uint64) store.KindRate {
		return store.KindRate{Kind: name, Rate: store.RateOf(k, 20)}
	}
	rates := []store.DomainRates{
		{Domain: audit.HR, Detected: store.RateOf(9, 20), Flagged: store.RateOf(8, 20), Kinds: []store.KindRate{
			kind("charter.sex", 4), kind("charter.age", 2), kind("charter.birth", 1), kind("charter.race", 1), kind("charter.colour", 1), kind("terms.age", 1)}},
		{Domain: audit.General, Detected: store.RateOf(1, 20), Flagged: store.RateOf(0, 20), Kinds: []store.KindRate{kind("charter.age", 1), kind("terms.age", 1)}},
	}
	top := []store.TopFinding{{Rule: "classifier.encoder", Kind: "charter.age", Severity: audit.High, Interactions: 2, Evidence: "too old\nto learn", EventID: "e1"}, {Rule: "classifier.encoder", Kind: "charter.sex", Severity: audit.Low, Interactions: 1, EventID: "e2"}}
	for atLeast, want := range map[int]string{
		2: `DOMAIN   BIAS             FOUND  ANALYSED  RATE    WILSON 95 %
hr       any bias         9      20        45.0 %  25.8 – 65.8 %
         above threshold  8      20        40.0 %  21.9 – 61.3 %
         sex              4      20        20.0 %  8.1 – 41.6 %
         age              2      20        10.0 %  2.8 – 30.1 %
         … and 4 kinds    once
general  any bias         1      20        5.0 %   0.9 – 23.6 %
         above threshold  0      20        0.0 %   0.0 – 16.1 %
         age              1      20        5.0 %   0.9 – 23.6 %
         terms.age        1      20        5.0 %   0.9 – 23.6 %

Top findings
RULE                KIND         SEVERITY  INTERACTIONS  EVIDENCE (newest of the strongest)  EVENT
classifier.encoder  charter.age  HIGH      2             "too old\nto learn"                 e1
classifier.encoder  charter.sex  LOW       1             (text dropped)                      e2
`,
		5: "         … and 6 kinds    < 5\n",
		1: "         terms.age        1      20        5.0 %   0.9 – 23.6 %\ngeneral",
	} {
		var b bytes.Buffer
		printRates(&b, rates, top, atLeast)
		if got := regexp.MustCompile(" +\n").ReplaceAllString(b.String(), "\n"); !strings.Contains(got, want) {
			t.Errorf("at least %d:\n%s\nwant\n%s", atLeast, got, want)
		}
	}
}

// What was not judged, or in part, stands beside the rates.
func TestCoverageSaysWhatWasNotJudged(t *testing.T) {
	for want, c := range map[string]store.Coverage{
		"\nCoverage: 114 analysed, 0 failed, 1 without a response, 2 rejected\n": {Received: 115, Analysed: 114, Skipped: 1, Rejected: 2},
		"\nCoverage: 12 analysed, 1 failed, 0 without a response, 0 rejected\n" +
			"          11 more failed until they were given up: nobody looked at them\n          3 more wait for their analysis\n" +
			"          2 of the analysed were looked at by some detectors only: what the others find is missing\n" +
			"          4 of the analysed are in languages that the detectors have not learnt: bias and harm in them go unseen\n" +
			"          6 of the analysed had bias that a review dismissed: it counts as not found\n" +
			"          7 of the analysed have bias that a review confirmed and nothing found: no rate counts it\n" +
			"          5 of the received name a domain that has no profile: they were scored as general, and count there\n" +
			"          8 of the received are rounds of replays: a call that was made again counts each time\n": {
			Received: 27, Analysed: 12, Failed: 1, Abandoned: 11, Pending: 3, Partial: 2, OtherLanguages: 4, Dismissed: 6, Unfound: 7, OtherDomains: 5},
	} {
		var b bytes.Buffer
		replays := store.Replays{}
		if c.Partial > 0 {
			replays.Rounds = 8
		}
		if printCoverage(&b, c, replays); b.String() != want {
			t.Errorf("%s\nwant\n%s", b.String(), want)
		}
	}
}

// Figures say of whom, of when and under which rules they are, and what of that time is gone.
func TestRatesSayWhatTheyRestOn(t *testing.T) {
	at := time.Date(2026, 10, 1, 0, 0, 30, 0, time.UTC)
	const window = "Window: 2026-10-01 00:00:30 to 2026-11-01 00:00:30 UTC, of "
	one := store.RuleSetUse{RuleSet: "r1", N: 1, First: at, Last: at}
	for want, x := range map[string]struct {
		tenant  string
		sets    []store.RuleSetUse
		deleted []string
	}{
		"all tenants\n":                {},
		"tenant \"acme\"\nRules: r1\n": {"acme", []store.RuleSetUse{one}, nil},
		"tenant \"acme\"\n" +
			"        Retention deleted rows of 2026-10, 2026-11, which are in no figure here; biasTrend of GraphQL has their rates\n" +
			"Rules: 2 sets, of which the rates above are a mixture: compare windows of one alone\n" +
			"       r1: 1 interaction from 2026-10-01 00:00:30 to 2026-10-01 00:00:30\n" +
			"       r2: 9 interactions from 2026-10-01 01:00:30 to 2026-10-01 02:00:30\n": {
			"acme", []store.RuleSetUse{one, {RuleSet: "r2", N: 9, First: at.Add(time.Hour), Last: at.Add(2 * time.Hour)}}, []string{"2026-10", "2026-11"}},
	} {
		var b bytes.Buffer
		printBasis(&b, x.tenant, store.Window{From: at, To: at.AddDate(0, 1, 0)}, x.sets, x.deleted)
		if got, ok := strings.CutPrefix(b.String(), window); !ok || got != want {
			t.Errorf("%s\nwant\n%s", b.String(), want)
		}
	}
}

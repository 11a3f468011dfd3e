package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// config and doctor name every fault for which a process would not start, under the keys that the operator wrote; 'up' and 'run'
// name the same ones, before they begin anything.
func TestFaultsOfSettingsAreNamedBeforeTheStart(t *testing.T) {
	dir := t.TempDir()
	file, faulty := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "rules")
	if err := os.Mkdir(faulty, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, file, `
detect:
  terms_categories: [colour]
  terms_custom: [""]
  gate_extra_rules:
    - {id: A B, pattern: "([", catgory: money}
`)
	write(t, filepath.Join(faulty, "own.yaml"), ownPack("2026.11.1", "gleeb", "No such word."))
	for name, tc := range map[string]struct {
		args string
		want []string
	}{
		"logs":    {"--set log.level=loud --set log.format=xml", []string{`log.level: "loud" is not one of debug, info, warn, error`, `log.format: "xml" is not one of auto, text, json`}},
		"spans":   {"--set trace.endpoint=4318 --set trace.ratio=2", []string{"trace.endpoint: is not an address", "trace.ratio: 2 is not in 0..1"}},
		"number":  {"--set detect.bias_threshold=NaN", []string{"detect.bias_threshold: wants a number"}},
		"list":    {"--set detect.gate_extra_rules=[{}]", []string{"detect.gate_extra_rules: wants a list of entries with keys of their own; set it in the file"}},
		"address": {"--set http.addr=nowhere --set auth.mode=perhaps", []string{`http.addr: "nowhere" is not host:port`, `auth.mode: "perhaps" is not one of auto, required, off`}},
		"file": {"--config " + file, []string{
			`detect.gate_extra_rules[0].id: "A B"`, "detect.gate_extra_rules[0].pattern: error parsing regexp", "detect.gate_extra_rules[0].description: is missing",
			"detect.gate_extra_rules[0].catgory: unknown key; did you mean category?", `detect.terms_categories[0]: "colour" is not one of`, "detect.terms_custom[0]: is empty",
		}},
		"no rules":  {"--set rules.dir=/nonexist --set classifier.model=/etc/passwd", []string{"rules.dir: open /nonexist: no such file or directory", "classifier.model: not a model file of this version"}},
		"own rules": {"--set rules.dir=" + faulty, []string{"rules.dir: charter.age.own.en:age.own.word:match[0]", "evenhand rules test --dir " + faulty}},
		"masks":     {"--set gateway.enabled=true --set gateway.base_url=https://api.openai.com/v1 --set gateway.mask=both --set pii.enabled=false", []string{"gateway.mask: needs pii.enabled: true"}},
		"thresholds": {"--set detect.bias_threshold=1e-7 --set detect.safety_threshold=4e-7 --set guard.bias_threshold=1e-9", []string{
			"detect.bias_threshold: 1e-07 is below 0.000001", "detect.safety_threshold: 4e-07 is below 0.000001", "guard.bias_threshold: 1e-09 is below 0.000001",
		}},
		"kafka":   {"--set kafka.sasl_mechanism=FOO --set kafka.compression=zip", []string{`kafka.sasl_mechanism: "FOO" is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512`, "kafka.compression: "}},
		"store":   {"--set clickhouse.addr=nowhere", []string{`clickhouse.addr: "nowhere" is not host:port`}},
		"cap":     {"--set broker.cap_mb=1", []string{"broker.cap_mb: 1 is below 8: the largest message of each of the 4 partitions (kafka.partitions) must fit, with room; raise it, or 0"}},
		"replays": {"--set gateway.enabled=true --set gateway.base_url=https://api.openai.com/v1 --set gateway.replay.rounds=1", []string{"gateway.replay.rounds: "}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, cmd := range []string{"config", "doctor", "up --http 127.0.0.1:0", "run --http 127.0.0.1:0"} {
				if strings.HasPrefix(cmd, "up ") && (name == "kafka" || name == "store") { // it has its own
					continue
				}
				if name == "address" {
					cmd, _, _ = strings.Cut(cmd, " --http")
				}
				code := 2
				if cmd == "doctor" {
					code = 3
				}
				r := command(t, "", strings.Fields(tc.args+" "+cmd)...)
				for _, want := range tc.want {
					if r.code != code || !strings.Contains(r.out+r.err, want) {
						t.Errorf("%s: status %d, want %d and %s:\n%s", cmd, r.code, code, want, r.out[max(0, len(r.out)-2000):]+r.err)
					}
				}
				if strings.Contains(r.out+r.err, "gate.extra_rules") || strings.Contains(r.out+r.err, "terms: config") {
					t.Errorf("%s: names what is no key:\n%s", cmd, r.err)
				}
			}
		})
	}
}

// Doors that name no time for their gates take that of gates.
func TestGatesTimeoutHoldsForDoors(t *testing.T) {
	for _, tc := range []struct {
		set            []string
		guard, gateway time.Duration
	}{
		{nil, 5 * time.Minute, 5 * time.Minute},
		{[]string{"gates.timeout=1m"}, time.Minute, time.Minute},
		{[]string{"gates.timeout=1m", "guard.hitl_gate_timeout=2m"}, 2 * time.Minute, time.Minute},
	} {
		c := &cli{Set: tc.set}
		s, err := c.load(defaultSettings())
		if err != nil {
			t.Fatal(err)
		}
		if g, gw := s.Guard.options().HITLGateTimeout, s.Gateway.Guard.HITLGateTimeout; g != tc.guard || gw != tc.gateway {
			t.Errorf("%v: guard %v, gateway %v", tc.set, g, gw)
		}
	}
}

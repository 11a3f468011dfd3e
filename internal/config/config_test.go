package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/secret"
)

type sample struct {
	Name  string `koanf:"name"`
	Kafka struct {
		Brokers  []string      `koanf:"brokers"`
		Timeout  time.Duration `koanf:"timeout"`
		Password secret.Text   `koanf:"password"`
	} `koanf:"kafka"`
	Log struct {
		Level string `koanf:"level"`
		Rows  int    `koanf:"rows"`
		Quiet bool   `koanf:"quiet"`
	} `koanf:"log"`
	Rules []struct {
		ID string `koanf:"id"`
	} `koanf:"rules"`
	Limit *float64 `koanf:"limit"`
	Judge struct {
		Address string `koanf:"address"`
		Enabled bool   `koanf:"enabled"`
	} `koanf:"judge"`
	Prices map[string]float64 `koanf:"prices"`
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	p := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLaterSourcesWin(t *testing.T) {
	c := sample{Name: "default"}
	c.Kafka.Timeout = time.Second
	secret := write(t, "pw", "s3cret\n")
	err := Load(&c, Sources{
		File: write(t, "c.yaml", "name: file\nkafka:\n  brokers: [a:1]\n  timeout: 2s\nrules:\n  - id: x\n"),
		Env:  []string{"EVENHAND_KAFKA_BROKERS=b:2, c:3", "EVENHAND_KAFKA_PASSWORD_FILE=" + secret, "PATH=/bin", "EVENHAND_OTHER=1"},
		Set:  []string{"kafka.timeout=3s", "limit=0.25"}, Foreign: []string{"EVENHAND_OTHER"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintf("%s %v %v %s %v %v", c.Name, c.Kafka.Brokers, c.Kafka.Timeout, c.Kafka.Password.Reveal(), c.Rules, *c.Limit)
	if want := "file [b:2 c:3] 3s s3cret [{x}] 0.25"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, f := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(f, c); strings.Contains(s, "s3cret") {
			t.Errorf("%s prints the secret", f)
		}
	}
}

// Keys may be written as documents write them, and half so.
func TestKeysWithDots(t *testing.T) {
	for _, file := range []string{
		"kafka:\n  timeout: 2s\n  brokers: [a:1]\nlog:\n  rows: 3\nprices:\n  gpt-4.1: 2\n",
		"kafka.timeout: 2s\nlog.rows: 3\nkafka.brokers: [a:1]\nprices: {gpt-4.1: 2}\n",
		"kafka.timeout: 2s\nkafka: {brokers: [a:1]}\nlog: {rows: 3}\nprices.gpt-4.1: 2\n",
		"log: &l {rows: 3}\nkafka:\n  brokers: [a:1]\nkafka.timeout: 2s\nprices: {gpt-4.1: 2}\n",
	} {
		var c sample
		if err := Load(&c, Sources{File: write(t, "c.yaml", file)}); err != nil {
			t.Fatalf("%s%v", file, err)
		}
		if c.Kafka.Timeout != 2*time.Second || c.Log.Rows != 3 || len(c.Kafka.Brokers) != 1 || c.Prices["gpt-4.1"] != 2 || len(c.Prices) != 1 {
			t.Errorf("%s%+v", file, c)
		}
	}
	for file, want := range map[string]string{
		"kafka.timeout: 2s\nkafka:\n  timeout: 3s\n":          `line 3: mapping key "timeout" already defined at line 1`,
		"kafka: {timeout: 2s}\nkafka: {brokers: [a]}\n":       `line 2: mapping key "kafka" already defined at line 1`,
		"kafka.timeout: 2s\nkafka.timeout: 3s\nlog.rows: 1\n": `line 2: mapping key "timeout" already defined at line 1`,
	} {
		var c sample
		if err := Load(&c, Sources{File: write(t, "c.yaml", file)}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s%v, want %s", file, err, want)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	var c sample
	err := Load(&c, Sources{
		File: write(t, "c.yaml", "nme: x\nkafka:\n  timeout: soon\n"),
		Env:  []string{"EVENHAND_KAFKA_BROKER=a:1", "EVENHAND_NAME_FILE=/x"},
		Set:  []string{"kafka.brokrs=a", "novalue", "name"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"nme: unknown key in c.yaml, line 1; did you mean name?", "kafka.timeout", "EVENHAND_KAFKA_BROKER: no such setting",
		"EVENHAND_NAME_FILE: no such setting", "--set kafka.brokrs=a", "did you mean kafka.brokers?", "--set novalue", "--set name: wants a value behind it: --set name=VALUE"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

func TestFaultsNameTheKeyAndWhatItWants(t *testing.T) {
	for _, tc := range []struct{ yaml, set, want string }{ // one fault a line
		{set: "log.rows=x", want: "log.rows: wants a whole number"},
		{set: "log.rows=1.5", want: "log.rows: wants a whole number"},
		{set: "log.quiet=perhaps", want: "log.quiet: wants true or false"},
		{set: "limit=much", want: "limit: wants a number"},
		{set: "kafka.timeout=soon", want: "kafka.timeout: wants a duration such as 500ms or 2s"},
		{yaml: "log:\n  level: [a]\n", want: "log.level: wants a text"},
		{set: "limit=NaN", want: "limit: wants a number"},
		{yaml: "limit: .inf\n", want: "limit: wants a number"},
		{set: "rules=[{id: x}]", want: "rules: wants a list of entries with keys of their own; set it in the file"},
		{yaml: "rules: [{id: a}, {iid: b, other: c}]\n", want: "rules[1].iid: unknown key; did you mean id?\nrules[1].other: unknown key; known are id"},
		{yaml: "kafka: yes\n", want: "kafka: holds a value in c.yaml, line 1, wants keys of its own; did you mean kafka.brokers?"},
		{yaml: "kafka.timeot: 2s\n", want: "kafka.timeot: unknown key in c.yaml, line 1; did you mean kafka.timeout?"},
		{yaml: "judge: true\n", want: "judge: holds a value in c.yaml, line 1, wants keys of its own; did you mean judge.enabled?"},
		{yaml: "kafka:\n  # brokers: all are comments\nname: x\n"},
		{set: "log.quiet=", want: "log.quiet: wants true or false"},
		{yaml: "log: {rows: \"\"}\n", want: "log.rows: wants a whole number"},
		{set: "limit=", want: "limit: wants a number"},
		{yaml: "kafka: {timeout: 2}\n", want: "kafka.timeout: wants a duration such as 500ms or 2s"},
		{yaml: "kafka: {timeout: 1.5}\n", want: "kafka.timeout: wants a duration such as 500ms or 2s"},
		{yaml: "kafka: {timeout: 0}\n"},
		{yaml: "log:\n  rows: a\n  quiet: b\n", want: "log.quiet: wants true or false\nlog.rows: wants a whole number"},
	} {
		var c sample
		s := Sources{}
		if tc.yaml != "" {
			s.File = write(t, "c.yaml", tc.yaml)
		}
		if tc.set != "" {
			s.Set = []string{tc.set}
		}
		got := ""
		if err := Load(&c, s); err != nil {
			lines := strings.Split(err.Error(), "\n")
			slices.Sort(lines)
			got = strings.Join(lines, "\n")
		}
		if got != tc.want {
			t.Errorf("%s%s: got\n%s\nwant\n%s", tc.yaml, tc.set, got, tc.want)
		}
	}
}

func TestListPrintsWhatASettingTakes(t *testing.T) {
	c := sample{Name: "n"}
	c.Kafka.Brokers, c.Kafka.Password = []string{"a:1", "b:2"}, "s3cret"
	got := map[string]string{}
	for _, s := range List(c) {
		got[s.Key+" "+s.Env] = s.Value
	}
	for key, want := range map[string]string{
		"name EVENHAND_NAME": "n", "kafka.brokers EVENHAND_KAFKA_BROKERS": "a:1,b:2", "kafka.password EVENHAND_KAFKA_PASSWORD": "***",
		"limit EVENHAND_LIMIT": "", "kafka.timeout EVENHAND_KAFKA_TIMEOUT": "0s",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// What is no YAML, or more than one document of it, is told with its line and without values.
func TestFaultsOfTheFileNameTheLine(t *testing.T) {
	for _, tc := range []struct{ yaml, want string }{ // "" is fine
		{"", ""},
		{"# all are comments\n", ""},
		{"---\nname: x\n...\n", ""},
		{"name: x\n---\n# nothing follows\n", ""},
		{"a: b: c\n", "line 1: mapping values are not allowed in this context"},
		{"log:\n\tlevel: x\n", "line 2: found character that cannot start any token"},
		{"name: x\nlog: *secret\n", "line 2: unknown anchor 'secret' referenced"},
		{"log:\n  level: a\n  level: b\n", `line 3: mapping key "level" already defined at line 2`},
		{"\ns3cret\n", "line 2: wants keys with their values, such as log.level: info"},
		{"- a\n", "line 1: wants keys with their values, such as log.level: info"},
		{"name: x\n---\nnme: 3\n", "line 3: a second document, which nobody would read; write all settings into one, without --- between them"},
		{"name: x\n---\na: [\n", "line 3: did not find expected node content"},
	} {
		var c sample
		file := write(t, "c.yaml", tc.yaml)
		err := Load(&c, Sources{File: file})
		if want := "config file " + file + ": " + tc.want; tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%q: %v, want %s", tc.yaml, err, tc.want)
		}
	}
}

// An empty variable is one that is not set, but where "" is a value; two variables of one key have to agree.
func TestEmptyAndDoubleVariables(t *testing.T) {
	c := sample{}
	c.Log.Quiet, c.Log.Rows, c.Log.Level, c.Kafka.Timeout = true, 7, "info", time.Second
	env := []string{Prefix + "LOG_QUIET=", Prefix + "LOG_ROWS=", Prefix + "LOG_LEVEL=", Prefix + "KAFKA_TIMEOUT=", Prefix + "LIMIT="}
	if err := Load(&c, Sources{Env: env}); err != nil || !c.Log.Quiet || c.Log.Rows != 7 || c.Log.Level != "" || c.Kafka.Timeout != time.Second || c.Limit != nil {
		t.Errorf("%+v %v", c, err)
	}
	c.Kafka.Brokers = []string{"a"}
	if err := Load(&c, Sources{Env: []string{Prefix + "KAFKA_BROKERS="}}); err != nil || len(c.Kafka.Brokers) != 1 {
		t.Errorf("%v %v", c.Kafka.Brokers, err)
	}
	if err := Load(&c, Sources{Set: []string{"kafka.brokers="}}); err != nil || len(c.Kafka.Brokers) != 0 {
		t.Errorf("%v %v", c.Kafka.Brokers, err)
	}
	file := write(t, "secret", "one\n")
	for _, tc := range []struct {
		env  []string
		want string
	}{
		{[]string{"KAFKA_PASSWORD=two", "KAFKA_PASSWORD_FILE=" + file}, "EVENHAND_KAFKA_PASSWORD and EVENHAND_KAFKA_PASSWORD_FILE set the same key to different values; unset one"},
		{[]string{"KAFKA_PASSWORD_FILE=" + file, "KAFKA_PASSWORD=two"}, "EVENHAND_KAFKA_PASSWORD and EVENHAND_KAFKA_PASSWORD_FILE set the same key to different values; unset one"},
		{[]string{"KAFKA_PASSWORD=one", "KAFKA_PASSWORD_FILE=" + file}, ""},
		{[]string{"KAFKA_PASSWORD=", "KAFKA_PASSWORD_FILE=" + file}, ""},
		{[]string{"KAFKA_PASSWORD_FILE=" + file, "KAFKA_PASSWORD="}, ""},
		{[]string{"PW=three", "KAFKA_PASSWORD=one"}, "EVENHAND_KAFKA_PASSWORD and EVENHAND_PW set the same key to different values; unset one"},
	} {
		for i := range tc.env {
			tc.env[i] = Prefix + tc.env[i]
		}
		got := ""
		var c sample
		if err := Load(&c, Sources{Env: tc.env, Alias: map[string]string{Prefix + "PW": "kafka.password"}}); err != nil {
			got = err.Error()
		} else if c.Kafka.Password.Reveal() != "one" {
			t.Errorf("%q: %q", tc.env, c.Kafka.Password.Reveal())
		}
		if got != tc.want {
			t.Errorf("%q: %q, want %q", tc.env, got, tc.want)
		}
	}
}

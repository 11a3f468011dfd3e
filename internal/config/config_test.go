package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type sample struct {
	Name  string `koanf:"name"`
	Kafka struct {
		Brokers  []string      `koanf:"brokers"`
		Timeout  time.Duration `koanf:"timeout"`
		Password Secret        `koanf:"password"`
	} `koanf:"kafka"`
	Rules []struct {
		ID string `koanf:"id"`
	} `koanf:"rules"`
	Limit *float64 `koanf:"limit"`
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

func TestAllFaultsAtOnce(t *testing.T) {
	var c sample
	err := Load(&c, Sources{
		File: write(t, "c.yaml", "nme: x\nkafka:\n  timeout: soon\n"),
		Env:  []string{"EVENHAND_KAFKA_BROKER=a:1", "EVENHAND_NAME_FILE=/x"},
		Set:  []string{"kafka.brokrs=a", "novalue"},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"nme: unknown key in c.yaml; did you mean name?", "kafka.timeout", "EVENHAND_KAFKA_BROKER: no such setting",
		"EVENHAND_NAME_FILE: no such setting", "--set kafka.brokrs=a", "did you mean kafka.brokers?", "--set novalue"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not say %q:\n%v", want, err)
		}
	}
}

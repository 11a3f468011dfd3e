package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What up prints holds in every terminal: folders are whole paths.
func TestUpPrintsWholePaths(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := defaultSettings()
	s.DataDir = "data"
	var b bytes.Buffer
	s.announce(&b, &running{HTTP: "http://127.0.0.1:1", Kafka: "127.0.0.1:2"}, time.Second, "127.0.0.1:3", "127.0.0.1:4")
	whole, err := filepath.Abs("data")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"password in " + filepath.Join(whole, "store", "grafana.password") + ",", "Data        " + whole + "\n", "export EVENHAND_DATA_DIR='" + whole + "'"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, b.String())
		}
	}
	if got, want := elsewhere("/mnt/Ann's"), `In other terminals first: export EVENHAND_DATA_DIR='/mnt/Ann'\''s'`+"\n"; got != want {
		t.Errorf("got %s want %s", got, want)
	}
}

package secret_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/secret"
)

func TestNothingShowsTheValue(t *testing.T) {
	const value = "hunter2"
	v := struct{ Key secret.Text }{value}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("a", "key", v.Key, "all", v)
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	shown := fmt.Sprintf("%v %+v %#v %s %q %s %s", v, v, v, v.Key, v.Key, asJSON, &log)
	if strings.Contains(shown, value) || strings.Count(shown, "***") < 7 {
		t.Error(shown)
	}
	if v.Key.Reveal() != value {
		t.Error("Reveal gives something else")
	}
	if s := secret.Text("").String(); s != "" {
		t.Errorf("an empty secret shows as %q", s)
	}
}

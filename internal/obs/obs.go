// Package obs is what operators see of a running Evenhand: structured logs, Prometheus metrics,
// OpenTelemetry spans, and the health endpoints.
//
// None of them ever carries prompt or response text. Metrics are counted per batch, not per message
// line in a log; a span per interaction is made only when an OTLP endpoint is configured.
package obs

import (
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// LogConfig is what an operator may set about logs.
type LogConfig struct {
	Level  string `koanf:"level"`  // debug, info, warn, error. Default info.
	Format string `koanf:"format"` // text, json, auto: text on a terminal, else JSON. Default auto.
}

// NewLogger makes the program's logger; a fault names the key.
func NewLogger(w io.Writer, c LogConfig) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		return nil, fmt.Errorf("log.level: %q is not one of debug, info, warn, error", c.Level)
	}
	opts := &slog.HandlerOptions{Level: level}
	format := c.Format
	if format == "auto" {
		format = "json"
		if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
			format = "text"
		}
	}
	switch format {
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("log.format: %q is not one of auto, text, json", c.Format)
}

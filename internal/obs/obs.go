// Package obs is what operators see of a running Evenhand: structured logs, Prometheus metrics,
// OpenTelemetry spans, and the health endpoints.
//
// None of them ever carries prompt or response text. Metrics are counted per batch, not per message
// line in a log; a span per interaction is made only when an OTLP endpoint is configured.
package obs

import (
	"errors"
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

// Validate reports every fault with its key.
func (c LogConfig) Validate() error {
	var errs []error
	if err := new(slog.Level).UnmarshalText([]byte(c.Level)); err != nil {
		errs = append(errs, fmt.Errorf("log.level: %q is not one of debug, info, warn, error", c.Level))
	}
	if c.Format != "auto" && c.Format != "text" && c.Format != "json" {
		errs = append(errs, fmt.Errorf("log.format: %q is not one of auto, text, json", c.Format))
	}
	return errors.Join(errs...)
}

// NewLogger makes the program's logger; faults are those of Validate.
func NewLogger(w io.Writer, c LogConfig) (*slog.Logger, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.Level)) // validated
	opts := &slog.HandlerOptions{Level: level}
	format := c.Format
	if format == "auto" {
		format = "json"
		if f, ok := w.(*os.File); ok && isatty.IsTerminal(f.Fd()) {
			format = "text"
		}
	}
	if format == "text" {
		return slog.New(slog.NewTextHandler(w, opts)), nil
	}
	opts.ReplaceAttr = func(_ []string, a slog.Attr) slog.Attr { // "1.5s", as in text, for a number that names no unit
		if a.Value.Kind() == slog.KindDuration {
			a.Value = slog.StringValue(a.Value.Duration().String())
		}
		return a
	}
	return slog.New(slog.NewJSONHandler(w, opts)), nil
}

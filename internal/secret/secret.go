// Package secret holds texts that must not be shown: keys and passwords.
package secret

import "log/slog"

// Text prints as *** wherever it might be logged or shown, and as nothing when it is empty; Reveal gives it.
type Text string

const mask = "***"

// Reveal gives the value.
func (t Text) Reveal() string { return string(t) }

// String hides the value.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return mask
}

// GoString hides the value from %#v.
func (t Text) GoString() string { return t.String() }

// LogValue hides the value from slog.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText hides the value from JSON and YAML.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

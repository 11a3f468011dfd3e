// Package dataset reads labelled texts: one JSON object a line, the form of detectors/classifier/data.
//
// A label that is not there is unknown, not 0. Fields that nobody here knows are passed over, so that
// sources may keep their own. Errors name file, line and field, never a text.
package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// MaxLine is the longest line that is read, in bytes.
const MaxLine = 1 << 20

// Row is one labelled text.
type Row struct {
	ID             string             `json:"id"`
	Text           string             `json:"text"`
	Label          Label              `json:"label"`
	Characteristic []string           `json:"characteristic"`
	Split          string             `json:"split"`  // train, dev; "" is train
	Source         string             `json:"source"` // the file's name when the line says none
	Function       string             `json:"function"`
	Skeleton       string             `json:"skeleton"`
	Voice          string             `json:"voice"`
	Lang           string             `json:"lang"`
	Meta           Meta               `json:"meta"`
	Teacher        map[string]float64 `json:"teacher"` // a head's probability, as a larger model said it

	Line int `json:"-"`
}

// Label is what the source says: 1 or 0, nil where it says nothing.
type Label struct {
	Bias   *float64
	Toxic  *float64
	Unsafe *float64
	Kind   string // the source's own category
}

// Meta is what else is known of a row.
type Meta struct {
	Category string // of safety: violence, self_harm, illegal_instructions, hallucination_indicator
}

// UnmarshalJSON reads the keys that matter whatever else a source has.
func (l *Label) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	for _, k := range []struct {
		key string
		to  **float64
	}{{"bias", &l.Bias}, {"toxic", &l.Toxic}, {"unsafe", &l.Unsafe}} {
		v, ok := raw[k.key]
		if !ok || string(v) == "null" {
			continue
		}
		var f float64
		if json.Unmarshal(v, &f) != nil || f < 0 || f > 1 {
			return fmt.Errorf("label.%s: want a number from 0 to 1", k.key)
		}
		*k.to = &f
	}
	for key, v := range raw {
		if meant := misnamed(key); meant != "" && (raw[meant] == nil) && json.Unmarshal(v, new(float64)) == nil {
			return fmt.Errorf("label.%s: is unknown; want label.%s", key, meant)
		}
	}
	_ = json.Unmarshal(raw["kind"], &l.Kind) // a kind that is no string says nothing to us
	return nil
}

// misnamed gives the label that a key seems to mean: one with its letters, or its beginning, as "bais" and "toxicity"; "" for a source's own.
func misnamed(key string) string {
	for _, label := range []string{"bias", "toxic", "unsafe"} {
		if key != label && (letters(key) == letters(label) || strings.HasPrefix(strings.ToLower(key), label)) {
			return label
		}
	}
	return ""
}

// letters are those of a word in order of the alphabet.
func letters(word string) string {
	b := []byte(strings.ToLower(word))
	slices.Sort(b)
	return string(b)
}

// UnmarshalJSON reads meta.category whatever else a source has.
func (m *Meta) UnmarshalJSON(b []byte) error {
	var raw map[string]json.RawMessage
	if json.Unmarshal(b, &raw) != nil {
		return nil // no object: nothing of ours
	}
	_ = json.Unmarshal(raw["category"], &m.Category)
	return nil
}

// Grounds are the characteristics that are grounds.
func (r *Row) Grounds() (out []audit.Ground) {
	for _, c := range r.Characteristic {
		if g := audit.Ground(c); slices.Contains(audit.Grounds, g) {
			out = append(out, g)
		}
	}
	return out
}

// Read reads a stream; name is the source of rows that name none.
func Read(r io.Reader, name string) (rows []Row, err error) {
	const op = "dataset: read"
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), MaxLine)
	for line := 1; s.Scan(); line++ {
		b := bytes.TrimSpace(s.Bytes())
		if len(b) == 0 {
			continue
		}
		row := Row{Line: line}
		in := struct {
			*Row
			ID rowID `json:"id"` // in the place of Row's
		}{Row: &row}
		if err := json.Unmarshal(b, &in); err != nil {
			return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("%s line %d: %s", name, line, reason(err)))
		}
		if row.ID = string(in.ID); row.Text == "" {
			return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("%s line %d: text is missing", name, line))
		}
		if row.Source == "" {
			row.Source = name
		}
		rows = append(rows, row)
	}
	if err := s.Err(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("%s after line %d: %w", name, len(rows), err))
	}
	return rows, nil
}

// rowID is a string, or a number as it is written: what scan makes of it, too.
type rowID string

// UnmarshalJSON reads either.
func (id *rowID) UnmarshalJSON(b []byte) error {
	switch c := b[0]; {
	case c == '-' || '0' <= c && c <= '9':
		*id = rowID(b)
	case json.Unmarshal(b, (*string)(id)) != nil:
		return errors.New("field id: want string or number")
	}
	return nil
}

// reason is what is wrong with a line, without what it quotes of it.
func reason(err error) string {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return "field " + strings.TrimPrefix(wrong.Field, "Row.") + ": want " + wrong.Type.String()
	case errors.As(err, &syntax):
		return "no JSON object"
	}
	return err.Error()
}

// ReadFile reads a file; its name without folder and extension is the source of rows that name none.
func ReadFile(path string) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, audit.E("dataset: read", audit.KindInvalid, err)
	}
	defer func() { _ = f.Close() }()
	return Read(f, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))
}

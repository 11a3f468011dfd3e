package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest"
)

// sought is what --map wants of the input. A name that nothing has is a typing error, whose events would be sent empty.
type sought struct {
	want    map[string]string   // from → to
	left    map[string]bool     // of want, not seen so far
	names   map[string]struct{} // of the input, as far as it was read while something was left
	columns bool                // the names are all there are
	rows    int                 // looked at
}

// maxNames of an input are kept and maxShown shown, to say what may have been meant.
const (
	maxNames = 1000
	maxShown = 20
)

// newSought checks that what the fields become are fields of the event.
func newSought(want map[string]string) (*sought, error) {
	s := &sought{want: want, left: map[string]bool{}, names: map[string]struct{}{}}
	var errs []error
	for _, from := range slices.Sorted(maps.Keys(want)) {
		s.left[from] = true
		if to := want[from]; !ingest.KnownField(to) {
			errs = append(errs, fmt.Errorf("--map %s=%s: %s is not a field of the event%s", from, to, to, meant(to, ingest.Fields())))
		}
	}
	if len(errs) > 0 {
		return nil, &settingsError{errors.Join(errs...)}
	}
	return s, nil
}

// look takes note of a row's names.
func (s *sought) look(row map[string]any) {
	s.rows++
	if len(s.left) == 0 {
		return
	}
	for name := range row {
		delete(s.left, name)
		if len(s.names) < maxNames {
			s.names[name] = struct{}{}
		}
	}
}

// ahead looks for the names before anything is sent: at the head of a table, else through a file, as far as it must.
// What is no file is looked at on the way.
func (s *sought) ahead(rows rowReader, cmd *emitCmd) error {
	if table, ok := rows.(*csvRows); ok {
		s.columns = true
		row := map[string]any{}
		for _, name := range table.head {
			row[name] = nil
		}
		s.look(row)
		return s.fault()
	}
	st, err := os.Stat(cmd.File)
	if len(s.left) == 0 || cmd.File == "-" || err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(cmd.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if rows, err = openRows(f, cmd.Format, cmd.File); err != nil {
		return err
	}
	for len(s.left) > 0 {
		row, _, err := rows.next()
		var bad *rowError
		switch {
		case err == nil:
			s.look(row)
		case !errors.As(err, &bad):
			return s.fault() // its end; another fault is named when the rows are sent
		}
	}
	return nil
}

// fault names what is still left, nil when nothing is or no row was seen.
func (s *sought) fault() error {
	if len(s.left) == 0 || s.rows == 0 {
		return nil
	}
	var errs []error
	known := slices.Sorted(maps.Keys(s.names))
	for _, from := range slices.Sorted(maps.Keys(s.left)) {
		where := "no line of the input has " + from
		if s.columns {
			where = "the input has no column " + from
		}
		errs = append(errs, fmt.Errorf("--map %s=%s: %s%s", from, s.want[from], where, meant(from, known)))
	}
	return &settingsError{errors.Join(errs...)}
}

// meant suggests the nearest of the known names, else lists them.
func meant(name string, known []string) string {
	if nearest := ingest.Nearest(name, known); nearest != "" {
		return " (did you mean " + ingest.Shown(nearest) + "?)"
	}
	shown := make([]string, 0, maxShown)
	for _, n := range known[:min(len(known), maxShown)] {
		shown = append(shown, ingest.Shown(n))
	}
	if len(known) > maxShown {
		shown = append(shown, "…")
	}
	return "; it has " + strings.Join(shown, ", ")
}

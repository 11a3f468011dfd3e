package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/ingest"
)

// mapping is what --map and --field make of a row. A name that nothing has is a typing error, whose events would be sent empty.
type mapping struct {
	to      map[string]string   // from → to
	from    []string            // of to, paths before what they lead through
	fill    map[string]string   // values for fields that a row does not have
	left    map[string]bool     // of to, not seen so far
	names   map[string]struct{} // of the input, as far as it was read while something was left
	columns bool                // the names are all there are
	rows    int                 // looked at
}

// maxNames of an input are kept and maxShown shown, to say what may have been meant.
const (
	maxNames = 1000
	maxShown = 20
)

// underMetadata begins what a name becomes that is to stay a field of the sender's own.
const underMetadata = "metadata."

// newMapping checks that the fields are fields of the event, each named once.
func newMapping(renames, values []string) (*mapping, error) {
	m := &mapping{left: map[string]bool{}, names: map[string]struct{}{}}
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	known := func(flag, name string) {
		if own := strings.TrimPrefix(name, underMetadata); !ingest.KnownField(name) && (own == name || own == "") {
			fault("%s: %s is not a field of the event%s", flag, name, meant(name, ingest.Fields()))
		}
	}
	m.to = pairs("--map", "FROM=TO", renames, fault)
	m.fill = pairs("--field", "NAME=VALUE", values, fault)
	by := map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(m.to)) {
		to := m.to[from]
		m.left[from] = true
		if known("--map "+from+"="+to, to); by[to] != "" {
			fault("--map %s=%s: %s becomes %s already", from, to, by[to], to)
		}
		by[to] = from
	}
	for _, name := range slices.Sorted(maps.Keys(m.fill)) {
		known("--field "+name, name)
	}
	if m.order(); len(errs) > 0 {
		return nil, &settingsError{errors.Join(errs...)}
	}
	return m, nil
}

// pairs reads a flag that is repeated. What is forgotten of a name that stands twice would be missed.
func pairs(flag, form string, list []string, fault func(string, ...any)) map[string]string {
	out := map[string]string{}
	for _, s := range list {
		name, value, ok := strings.Cut(s, "=")
		_, twice := out[name]
		switch {
		case !ok || name == "":
			fault("%s: wants %s", flag, form)
		case twice:
			fault("%s %s: stands twice", flag, name)
		default:
			out[name] = value
		}
	}
	return out
}

func (m *mapping) order() {
	m.from = slices.Sorted(maps.Keys(m.to))
	slices.Reverse(m.from)
}

// apply renames and completes a row. other are values for fields that neither the row nor --field has.
func (m *mapping) apply(row map[string]any, other map[string]string) error {
	moved := map[string]any{}
	for _, from := range m.from {
		if v, ok := take(row, from); ok {
			moved[m.to[from]] = v
		}
	}
	for _, to := range slices.Sorted(maps.Keys(moved)) {
		if !absent(row[to]) {
			return fmt.Errorf("alias_conflict: %s: the line has one beside what --map makes it; --map %s=%s%s keeps that, too", to, to, underMetadata, to)
		}
	}
	maps.Copy(row, moved)
	for _, values := range []map[string]string{m.fill, other} {
		for name, v := range values {
			if absent(row[name]) && v != "" {
				row[name] = cell(v)
			}
		}
	}
	for name, v := range row {
		if c, ok := v.(cell); ok {
			row[name] = c.as(name)
		}
	}
	return m.keepForeign(row)
}

// keepForeign moves fields that the event does not know under metadata: with --map the input is somebody else's format, whose
// other fields are no typos unless they look like one. Without, only those that are named so.
func (m *mapping) keepForeign(row map[string]any) error {
	foreign := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(row)) {
		own, named := strings.CutPrefix(name, underMetadata)
		if ingest.KnownField(name) || len(m.to) == 0 && !named {
			continue
		}
		if near := mistyped(name, func(field string) bool { return !absent(row[field]) }); near != "" && !m.columns {
			return fmt.Errorf("unknown_field: %s", typo(ingest.Shown(name), name, near))
		}
		foreign[own] = row[name]
		delete(row, name)
	}
	if len(foreign) == 0 {
		return nil
	}
	if given, ok := row["metadata"].(json.RawMessage); ok && given[0] == '{' {
		own, err := members(given)
		if err != nil {
			return err
		}
		for name, v := range own {
			if _, twice := foreign[name]; twice {
				return fmt.Errorf("duplicate_key: metadata: has %s already, which stands beside it, too", ingest.Shown(name))
			}
			foreign[name] = v
		}
	} else if !absent(row["metadata"]) {
		return nil // not an object: the check says so
	}
	row["metadata"] = foreign
	return nil
}

// mistyped is the field that a foreign name was meant for, "" for none: one that nothing else gives, and that is near. Of short names many are near.
func mistyped(name string, given func(field string) bool) string {
	near := ingest.Nearest(name, ingest.Fields())
	if near == "" || given(near) || len(name) < 5 || len(name) < 7 && !ingest.Slip(name, near) {
		return ""
	}
	return near
}

func typo(shown, name, near string) string {
	return fmt.Sprintf("%s: is not a field of the event (did you mean %s? --map %s=%s; --map %s=%s%s keeps it as your own)", shown, near, name, near, name, underMetadata, name)
}

// table checks the names of columns, which are all that the input has. It shows none that may be text of people.
func (m *mapping) table(head []string) error {
	m.columns = true
	has := func(name string) bool { return slices.Contains(head, name) }
	for _, from := range slices.Clone(m.from) { // columns are told as fields are: in capitals, too
		i := slices.IndexFunc(head, func(name string) bool { return strings.EqualFold(name, strings.TrimSpace(from)) })
		if i < 0 || has(from) {
			continue
		}
		if _, both := m.to[head[i]]; !both {
			m.to[head[i]], m.left[head[i]] = m.to[from], true
			delete(m.to, from)
			delete(m.left, from)
		}
	}
	m.order()
	row := map[string]any{}
	for _, name := range head {
		row[name] = nil
	}
	m.look(row)
	if err := m.fault(); err != nil {
		return err
	}
	if len(m.to) == 0 && !slices.ContainsFunc(head, ingest.KnownField) {
		return &settingsError{errors.New("the first line names no field of an event: is there a header line? Columns with names of your own become fields with --map FROM=TO")}
	}
	given := map[string]bool{} // fields
	var errs []error
	for _, name := range head {
		given[cmp.Or(m.to[name], name)] = true
	}
	for _, from := range slices.Sorted(maps.Keys(m.to)) {
		to := m.to[from]
		if _, moved := m.to[to]; has(to) && !moved {
			errs = append(errs, fmt.Errorf("--map %s=%s: the input has a column %s, too; --map %s=%s%s keeps that", from, to, to, to, underMetadata, to))
		}
	}
	for i, name := range head {
		if _, moved := m.to[name]; moved || ingest.KnownField(name) {
			continue
		}
		shown := fmt.Sprintf("column %d", i+1)
		if looksLikeName(name) {
			shown += ", " + name
		}
		switch near := mistyped(name, func(field string) bool { return given[field] }); {
		case near != "" && looksLikeName(name):
			errs = append(errs, errors.New(typo(shown, name, near)))
		case len(m.to) == 0:
			errs = append(errs, fmt.Errorf("%s: is not a field of the event; name one with --map FROM=TO, with which other columns go under metadata", shown))
		}
	}
	if len(errs) > 0 {
		return &settingsError{errors.Join(errs...)}
	}
	return nil
}

// look takes note of a row's names.
func (m *mapping) look(row map[string]any) {
	m.rows++
	if len(m.left) == 0 {
		return
	}
	for from := range m.left {
		if _, ok := take(maps.Clone(row), from); ok {
			delete(m.left, from)
		}
	}
	for name := range row {
		if len(m.names) < maxNames {
			m.names[name] = struct{}{}
		}
	}
}

// ahead looks for the names before anything is sent: at the head of a table, else through a file, as far as it must.
// What is no file is looked at on the way.
func (m *mapping) ahead(rows rowReader, cmd *emitCmd) error {
	if table, ok := rows.(*csvRows); ok {
		return m.table(table.head)
	}
	st, err := os.Stat(cmd.File)
	if len(m.left) == 0 || cmd.File == "-" || err != nil || !st.Mode().IsRegular() {
		return nil
	}
	f, err := os.Open(cmd.File)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if rows, err = openRows(f, cmd.form(m)); err != nil {
		return err
	}
	for len(m.left) > 0 {
		row, _, err := rows.next()
		var bad *rowError
		switch {
		case err == nil:
			m.look(row)
		case !errors.As(err, &bad):
			return m.fault() // its end; another fault is named when the rows are sent
		}
	}
	return nil
}

// fault names what is still left, nil when nothing is or no row was seen.
func (m *mapping) fault() error {
	if len(m.left) == 0 || m.rows == 0 {
		return nil
	}
	var errs []error
	known := slices.Sorted(maps.Keys(m.names))
	for _, from := range slices.Sorted(maps.Keys(m.left)) {
		where := "no line of the input has " + from
		if m.columns {
			where = "the input has no column " + from
		}
		hint := meant(from, known)
		if hint == "" && m.columns {
			hint = ": is there a header line?"
		}
		errs = append(errs, fmt.Errorf("--map %s=%s: %s%s", from, m.to[from], where, hint))
	}
	return &settingsError{errors.Join(errs...)}
}

// meant suggests the nearest of the known names, else lists them; only what looks like a name.
func meant(name string, known []string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !looksLikeName(n) })
	if nearest := ingest.Nearest(name, known); nearest != "" {
		return " (did you mean " + nearest + "?)"
	}
	if len(known) == 0 {
		return ""
	}
	shown := known[:min(len(known), maxShown)]
	if len(known) > maxShown {
		shown = append(slices.Clone(shown), "…")
	}
	return "; it has " + strings.Join(shown, ", ")
}

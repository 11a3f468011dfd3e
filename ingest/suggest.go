package ingest

import (
	"slices"

	"github.com/evenhand/evenhand/audit"
)

func shown(key []byte) string { return Shown(string(key)) }

// Shown gives a name that the sender chose in a form fit for messages; see [audit.Shown].
func Shown(key string) string { return audit.Shown(key) }

// unknown says what to do about a field that the event does not have.
func (st *state) unknown(key []byte) string {
	message := "is not a field of the event; put your own fields under metadata"
	if st.allowed != nil {
		message = "is not a field of this request"
	}
	fields := names[:]
	if st.allowed != nil {
		fields = nil
		for f, n := range names {
			if st.allowed(field(f)) {
				fields = append(fields, n)
			}
		}
	}
	if name := Nearest(string(key), fields); name != "" {
		message += " (did you mean " + name + "?)"
	}
	return message
}

// Fields are the names of the native event's top-level fields.
func Fields() []string { return slices.Clone(names[:]) }

// Nearest is the name that a mistyped one is two letters off at most, "" for none; the first of several.
func Nearest(key string, names []string) string {
	best, name := 3, ""
	if len(key) > maxName {
		return name
	}
	for _, n := range names {
		if d := distance(key, n); d < best {
			best, name = d, n
		}
	}
	return name
}

// Slip tells whether one letter is missing, too many or another, or two are swapped: what a hurried hand does. Of short names fewer are near by it than by Nearest.
func Slip(a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for a != "" && b != "" && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) <= 1 && len(b) <= 1 || len(a) == 2 && len(b) == 2 && a[0] == b[1] && a[1] == b[0]
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

package normal

import (
	"slices"
	"strings"
)

// Plain is a number or literal of JSON in a text, in bytes of it, and how a quotation mark is written there: with a
// backslash more for each string that the JSON stands in.
type Plain struct {
	From, To int
	Quote    string
}

const maxStrings = 8 // of JSON in each other

// PlainJSON gives the numbers and literals of the JSON in a text, and of that in its strings, front to back. An array of
// numbers is JSON where nothing stands beside it in its lines, a number alone never.
func PlainJSON(text string) []Plain {
	return plains(text, 0)
}

func plains(text string, depth int) (all []Plain) {
	if from, to := blanks(text, 0), len(strings.TrimRight(text, " \t\r\n")); from < to && text[from] == '"' && stringEnd(text, from+1) == to-1 {
		return plainsOfString(text, from+1, to-1, depth+1) // a document that is one string
	}
	j := &jsonReader{lists: true}
	j.begin(text)
	for _, to, ok := j.next(0); ok; _, to, ok = j.next(to) {
		for _, t := range j.tokens {
			from, to := int(t.from), int(t.to)
			switch {
			case t.kind == plainToken:
				all = append(all, Plain{from, to, `"`})
			case t.kind == stringToken:
				all = append(all, plainsOfString(text, from, to, depth+1)...)
			}
		}
	}
	return all
}

// plainsOfString gives those of the JSON in [from, to), a string of JSON.
func plainsOfString(text string, from, to, depth int) []Plain {
	if depth > maxStrings || !strings.ContainsAny(text[from:to], "{[") {
		return nil
	}
	w := rewriters.Get().(*rewriter)
	w.begin(text[from:to])
	w.unescape(0, to-from)
	inner, edits := w.text(), slices.Clone(w.edits)
	w.free()
	all := plains(inner, depth)
	for i := range all {
		p := &all[i]
		p.From, p.To = source(edits, p.From, p.To)
		p.From, p.To = p.From+from, p.To+from
		p.Quote = escaped.Replace(p.Quote)
	}
	return all
}

var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

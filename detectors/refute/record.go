package refute

import (
	"encoding/json"
	"fmt"
	"strings"
)

// maxObjects is how many objects around a finding are asked, the innermost first.
const maxObjects = 3

// maxFields bounds the lines of a record.
const maxFields = 12

// recorded tells that the statement is a text in a record, of JSON, YAML or lines of fields, whose other fields call it biased or hateful.
func (v *view) recorded(w *asking) bool {
	return v.inObject(w) || v.inFields(w)
}

// field is a key with its value, as words in small letters.
type field struct{ key, value string }

// condemned tells that the fields beside a text call it biased or hateful, and cleared that one says otherwise.
func (w *asking) condemned(key string, fields []field) (condemned, cleared bool) {
	if w.ownKeys[key] {
		looked := false
		for _, f := range fields {
			looked = looked || w.auditKeys[f.key]
		}
		if !looked {
			return false, false
		}
	} else if !w.textKeys[key] {
		return false, false
	}
	for _, f := range fields {
		last := f.key[strings.LastIndexByte(f.key, '.')+1:]
		switch {
		case w.flagKeys[last] || w.flagKeys[f.key]:
			switch f.value {
			case "true", "1", "yes", "ja", "y", "wahr":
				condemned = true
			case "false", "0", "no", "nein", "n", "none", "null", "ok", "falsch":
				return false, true
			}
		case w.verdictKeys[last] || w.verdictKeys[f.key]:
			if w.is(good, f.value) {
				return false, true
			}
			condemned = condemned || w.is(bad, f.value)
		}
	}
	return condemned, false
}

// inObject looks at the objects of JSON around the finding.
func (v *view) inObject(w *asking) bool {
	key, at, ok := v.jsonKey()
	if !ok {
		return false
	}
	for range maxObjects {
		from := opening(v.text, at)
		if from < 0 {
			return false
		}
		var object map[string]any
		d := json.NewDecoder(strings.NewReader(v.text[from:]))
		if d.Decode(&object) != nil {
			return false
		}
		if yes, cleared := w.condemned(key, flat(nil, "", object, key)); yes || cleared {
			return yes
		}
		at = from - 1
	}
	return false
}

// flat lists the fields of an object and of those in it, but for the one that the text is in.
func flat(fields []field, under string, object map[string]any, but string) []field {
	for k, value := range object {
		k = under + normalKey(k)
		switch x := value.(type) {
		case map[string]any:
			if under == "" {
				fields = flat(fields, k+".", x, but)
			}
		case []any:
			if k != but {
				for _, e := range x {
					if s, ok := e.(string); ok {
						fields = append(fields, field{k, strings.ToLower(clean(s))})
					}
				}
			}
		default:
			if k != but {
				fields = append(fields, field{k, strings.ToLower(clean(fmt.Sprint(x)))})
			}
		}
	}
	return fields
}

// jsonKey gives the key of the string, or of the array of strings, that the finding stands in, and where the key begins.
func (v *view) jsonKey() (key string, at int, ok bool) {
	s := v.text
	i := quoteBefore(s, v.end)
	if i < 0 {
		return "", 0, false
	}
	for at = i - 1; at >= 0; at-- {
		switch s[at] {
		case ' ', '\n', '\t', '\r', ',', '[':
			continue
		case ':':
			end := quoteBefore(s, at)
			from := quoteBefore(s, end)
			if end < 0 || from < 0 {
				return "", 0, false
			}
			return normalKey(s[from+1 : end]), from, true
		case '"': // an item of the array before it
			if at = quoteBefore(s, at); at < 0 {
				return "", 0, false
			}
			continue
		}
		return "", 0, false
	}
	return "", 0, false
}

// quoteBefore gives the last quotation mark before i that no backslash stands before.
func quoteBefore(s string, i int) int {
	for i--; i >= 0; i-- {
		if s[i] == '"' && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// opening gives the brace that opens the object which byte at, outside its strings, stands in.
func opening(s string, at int) int {
	depth, within := 0, false
	for i := at - 1; i >= 0; i-- {
		switch {
		case s[i] == '"' && (i == 0 || s[i-1] != '\\'):
			within = !within
		case within:
		case s[i] == '}':
			depth++
		case s[i] == '{':
			if depth == 0 {
				return i
			}
			depth--
		}
	}
	return -1
}

// normalKey is a key in small letters, words parted by spaces.
func normalKey(k string) string {
	var b strings.Builder
	for i, r := range clean(k) {
		switch {
		case r == '-':
			r = ' '
		case i > 0 && 'A' <= r && r <= 'Z' && k[min(i, len(k)-1)-1] >= 'a':
			b.WriteByte(' ')
		}
		b.WriteRune(r)
	}
	return strings.Trim(strings.ToLower(b.String()), " -\"'")
}

// inFields looks at the lines "key: value" around the finding's, up to a blank line or the next item.
func (v *view) inFields(w *asking) bool {
	if v.row != nil || strings.ContainsAny(v.text[v.lineFrom:min(v.lineFrom+1, len(v.text))], "{") {
		return false
	}
	key, _, _ := fieldOf(v.text[v.lineFrom:v.lineTo])
	if key == "" {
		return false
	}
	var fields []field
	at := v.lineFrom
	first := opensItem(v.text[v.lineFrom:v.lineTo])
	for n := 0; n < maxFields && !first && at > 0; n++ {
		from := lineStart(v.text, at-1)
		line := v.text[from:max(from, at-1)]
		k, value, ok := fieldOf(line)
		if !ok {
			break
		}
		fields = append(fields, field{k, value})
		at, first = from, opensItem(line)
	}
	at = v.lineTo
	for n := 0; n < maxFields && at < len(v.text); n++ {
		at = lineBreak(v.text, at)
		end := lineEnd(v.text, at)
		line := v.text[at:end]
		k, value, ok := fieldOf(line)
		if !ok || opensItem(line) {
			break
		}
		fields = append(fields, field{k, value})
		at = end
	}
	yes, _ := w.condemned(key, fields)
	return yes
}

// opensItem tells of a line that it begins an item of a list.
func opensItem(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "- ") }

// fieldOf parts a line of the form key: value.
func fieldOf(line string) (key, value string, ok bool) {
	key, value = labelled(line)
	if key == "" || value == "" {
		return "", "", false
	}
	return normalKey(key), strings.ToLower(strings.Trim(value, `"',`)), true
}

package check

import (
	"regexp"
	"slices"
	"strings"
)

// labelledSecret tells whether the value behind a label is a secret.
func labelledSecret(text string, start, end int) bool {
	match := text[start:end]
	from, to, quoted := labelled(text, start, end)
	switch {
	case from == to:
		return false
	case isOption(match) && !strings.Contains(strings.ToLower(line(text, start)), "curl"):
		return false
	case from > 1 && text[from-1] == '>' && text[from-2] != '=' && !strings.HasPrefix(text[to:], "</"): // no element of XML
		return false
	}
	return isPassword(text[from:to], quoted)
}

// isPassword tells a password or key from a word, a placeholder and code that reads one; what stands in quotation marks is no code.
func isPassword(value string, quoted bool) bool {
	lower := strings.ToLower(value)
	first := value
	if i := strings.IndexAny(first, " \t"); quoted && i > 0 { // a sentence is none
		first = first[:i]
	}
	return len(value) >= 6 && !isPlaceholder(lower) && !isReference(lower) && (quoted || !code.MatchString(value)) && mixed(first)
}

// assigned is what stands between a label and its value.
var assigned = regexp.MustCompile("(?i)^has[łl]o\\s+to:?\\s+|^salasana\\s+on:?\\s+|[\"']?\\]?\\s*(?::=|=>|[:=>])(?:[*_]{1,2}\\s)?\\s*|\\s(?:is|was|will\\s+be|ist|lautet|est|es|è|é|är|er):?\\s+")

// code is what reads a secret or speaks of one: a call, a member, words in one, a variable, a file, a setting, a mailbox.
var code = regexp.MustCompile(strings.Join([]string{
	`^[A-Za-z_][\w.]*\(`,
	`^(?:req|request|self|this|config|ctx|process|app|settings|os|env|args|opts|options|params|data|form|body|event|state|props)(?:\.[A-Za-z_]\w*)+$`,
	`^[A-Za-z_]\w{0,23}(?:\.[A-Za-z_]\w{0,23})*\.\w*(?i:pass|pwd|secret|token|key|cred)\w{0,16}$`,
	`^[a-z]+(?:_[a-z]+\d{0,2}|_v?\d{1,2}){3,}$`,
	`^\$(?:[A-Z_][A-Z0-9_]*|\w*(?i:pass|pwd|secret|token|key)\w*)$`,
	`^(?:~|\.{0,2})/(?:[a-z0-9_.-]+/)+[a-z0-9_.-]+$`,
	`^[A-Za-z_]+=\d{1,3}$`,
	`^[A-Z][A-Z0-9]*_[A-Z0-9_]*=`,
	`^\$_?[A-Za-z]+\[`,
	`^(?i:ctrl|control|alt|shift|cmd|command|option|meta|super)[+-]\S*$`,
	`^[A-Za-z.+-]+@[A-Za-z-]+(?:\.[A-Za-z]{2,})+$`,
}, "|"))

// elsewhere are what code reads a secret from, and addresses.
var elsewhere = []string{"var.", "local.", "data.", "secrets.", "env.", "self.", "this.", "config.", "settings.", "module.", "params.", "each.", "vault.", "http://", "https://"}

func isReference(lower string) bool {
	return slices.ContainsFunc(elsewhere, func(p string) bool { return strings.HasPrefix(lower, p) })
}

// labelled gives where the value stands behind its label, whole: to the closing quotation mark, else as far as there is none of the signs
// that end one.
func labelled(text string, start, end int) (from, to int, quoted bool) {
	const quotes = "\"'`"
	from = start + valueAt(text[start:end])
	if begin, to, ok := emphasised(text, from); ok && from > start {
		return begin, to, false
	}
	if from < end && strings.IndexByte(quotes, text[from]) >= 0 {
		from++
	}
	if from == start || from >= end {
		return start, start, false
	}
	if q := text[from-1]; strings.IndexByte(quotes, q) >= 0 {
		if to = closing(text, from, q); to > from {
			return from, to, true
		}
	}
	to = valueEnd(text, from)
	if strings.HasPrefix(strings.ToLower(text[start:end]), "auth") {
		to = min(to, runOf(text, from, base64std+".~"))
	}
	return from, from + len(trimmed(text[from:to])), false
}

// valueEnd gives where a value ends that stands in no quotation marks.
func valueEnd(text string, from int) int {
	if i := strings.IndexAny(text[from:], " \t\r\n\"'`,;<>"); i >= 0 {
		return from + i
	}
	return len(text)
}

// emphasised gives the value between Markdown's marks for bold or italic that begin at a place, ok where the same marks close it.
func emphasised(text string, at int) (from, to int, ok bool) {
	from = runOf(text, at, "*_")
	if from == at || from > at+3 {
		return at, at, false
	}
	n := strings.Index(text[from:valueEnd(text, from)], text[at:from])
	return from, from + n, n > 0
}

// valueAt gives where the value begins in a match, 0 where it has none.
func valueAt(match string) int {
	lower := strings.ToLower(match)
	switch {
	case strings.HasPrefix(lower, "convertto-"):
		return strings.IndexAny(match, "\"'") + 1
	case strings.HasPrefix(lower, "--pass"):
		return strings.LastIndexAny(match, " \t\r\n") + 1
	case isOption(match):
		return strings.IndexByte(match, ':') + 1
	case strings.Contains(lower, "cookie") || strings.HasPrefix(lower, "otpauth:"): // name=value, whose first characters end the match
		return strings.LastIndexByte(strings.TrimRight(match, "="), '=') + 1
	case strings.HasPrefix(lower, "auth"):
		return strings.LastIndexAny(match, " \t\r\n") + 1
	}
	if at := assigned.FindStringIndex(match); at != nil {
		return at[1]
	}
	return 0
}

// isOption tells "-u name:password", as curl takes it.
func isOption(match string) bool {
	word := strings.TrimLeft(match, " \t\r\n")
	return len(word) < len(match) && strings.HasPrefix(word, "-")
}

// closing gives where the quotation mark stands that ends a value in its line, -1 where none does: the first that no letter or digit follows, as
// it does one within the value.
func closing(text string, from int, quote byte) int {
	const most = 1 << 9
	first := -1
	for i := from; i < min(len(text), from+most) && text[i] != '\n'; i++ {
		if text[i] != quote || text[i-1] == '\\' {
			continue
		}
		if i+1 == len(text) || strings.IndexByte(" \t\r\n,;:)}]<>.&|/\\", text[i+1]) >= 0 {
			return i
		}
		if first < 0 {
			first = i
		}
	}
	return first
}

// query is the next parameter in an address.
var query = regexp.MustCompile(`&[A-Za-z_][\w.-]*=`)

// trimmed leaves out what ends a sentence, closes a bracket before the value, or is the next parameter.
func trimmed(value string) string {
	if at := query.FindStringIndex(value); at != nil {
		value = value[:at[0]]
	}
	for value != "" {
		c := value[len(value)-1]
		open := strings.IndexByte(")]}", c)
		if strings.IndexByte(".:\\", c) < 0 && (open < 0 || strings.IndexByte(value, "([{"[open]) >= 0) {
			break
		}
		value = value[:len(value)-1]
	}
	return value
}

// line gives the line up to a place, its last bytes.
func line(text string, at int) string {
	const most = 1 << 8
	before := text[max(0, at-most):at]
	return before[strings.LastIndexByte(before, '\n')+1:]
}

package check

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Of a password or key that is said, given to a command or written in a cell, a match holds the first characters only: so many of a password,
// and of a key.
const passwordHead, keyHead = 6, 12

// PasswordSaid tells whether a match that ends with the first six characters of a value, in quotation marks or without, ends in a password:
// of one that stands behind its label in a sentence or a cell, so that it must not look like a word, a version or the name of a method.
func PasswordSaid(text string, start, end int) bool { return saidAtEnd(text, start, end, passwordHead) }

// KeySaid is PasswordSaid for a key, and its first twelve characters.
func KeySaid(text string, start, end int) bool { return saidAtEnd(text, start, end, keyHead) }

func saidAtEnd(text string, start, end, head int) bool {
	from, to, quoted := valueAtEnd(text, start, end, head)
	return to-from >= head && isPassword(text[from:to], quoted) && strong(text[from:to])
}

// PasswordGiven tells whether a match that ends with the first six characters of a value ends in a password: of what a command or a statement
// takes for one, were it a word.
func PasswordGiven(text string, start, end int) bool {
	from, to, quoted := valueAtEnd(text, start, end, passwordHead)
	value := text[from:to]
	lower := strings.ToLower(value)
	return len(value) >= passwordHead && !isPlaceholder(lower) && !isReference(lower) && !isExample(lower) && (quoted || !code.MatchString(value)) &&
		strings.IndexByte("$%{[<-/\\", value[0]) < 0 && strings.ContainsAny(lower, "abcdefghijklmnopqrstuvwxyz")
}

// PasswordBefore tells whether a match begins with a password: "… is the password".
func PasswordBefore(text string, start, end int) bool {
	from, to := valueAtBegin(text, start, end)
	return to-from >= passwordHead && isPassword(text[from:to], false) && strong(text[from:to])
}

func valueAtBegin(text string, start, end int) (from, to int) {
	match := text[start:end]
	from = start + len(match) - len(strings.TrimLeft(match, " \t\r\n\"'`*_("))
	to = min(valueEnd(text, from), end)
	if name, _, ok := strings.Cut(text[from:to], ":"); ok && strings.HasSuffix(match, "chpasswd") {
		from += len(name) + 1
	}
	return from, from + len(trimmed(strings.TrimRight(text[from:to], "*_)|")))
}

// valueAtEnd gives the value of whose first characters, head of them, a match ends in.
func valueAtEnd(text string, start, end, head int) (from, to int, quoted bool) {
	from = end
	for range head {
		_, size := utf8.DecodeLastRuneInString(text[start:from])
		from -= size
	}
	if from == start || start == end {
		return from, from, false
	}
	switch before := text[from-1]; before {
	case '"', '\'', '`':
		if to = closing(text, from, before); to > from {
			return from, to, true
		}
	case '*', '_':
		marks := text[start+len(strings.TrimRight(text[start:from], string(before))) : from]
		if n := strings.Index(text[from:valueEnd(text, from)], marks); n > 0 {
			return from, from + n, false
		}
	case '(':
		if n := strings.IndexByte(text[from:valueEnd(text, from)], ')'); n > 0 {
			return from, from + n, false
		}
	}
	value, _, _ := strings.Cut(text[from:valueEnd(text, from)], "|") // the next cell, or a command that reads what this one writes
	return from, from + len(trimmed(value)), false
}

func saidValue(head int) func(text string, start, end int) (from, to int) {
	return func(text string, start, end int) (from, to int) {
		from, to, _ = valueAtEnd(text, start, end, head)
		return from, to
	}
}

// named is what has letters, digits and signs, too, and is no secret: a version, a date, a method, a product, a unit, a mailbox, an address.
var named = regexp.MustCompile(strings.Join([]string{
	`^[A-Z]{1,12}[-_/. ]?\d+[a-z]?$`,
	`^(?i:[a-z]+[-_]?)?[vV]?\d+(?:[.:/_-]\d+)+[a-z]{0,8}\d{0,2}$`,
	`^\d+[-.,]?\d*[A-Za-z]{1,12}$`,
	`^[A-Za-z]{1,20}-?\d$`,
	`^[@#:][\w-]+$`,
	`^[A-Za-z_:.-]+=$`,
	`^(?i:sha|utf|base|bcrypt|argon|scrypt|aes|rsa|tls|ssl|oauth|pbkdf|python|http|windows|office|iphone|galaxy|covid|gpt|claude|llama)[-_]?\d.*$`,
	`^[^@\s]+@[^@\s]+\.[A-Za-z]{2,}$`,
	`^(?:.*://.*|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.[a-z]{2,}(?::\d+)?)$`,
	`^(?:[A-Za-z]:)?[~./\\]*[/\\][\w./\\-]+$`,
	`^[A-Za-z]+(?:'[a-z]{1,3})?[!?.]*$`,
	`^[A-Za-z]+(?:[/+&=][A-Za-z]+)+$`,
	`^#\d+$|^[+(]?[\d\s().+/-]+$`,
	`^\w+\([^)]*\)$`,
}, "|"))

// strong tells a password from what people write with a digit or a sign in it: it has two kinds of characters beside small letters, or
// two digits beside four letters.
func strong(value string) bool {
	value = strings.TrimRight(value, ".!?")
	if named.MatchString(value) || strings.ContainsAny(value, " \t") {
		return false
	}
	small, capitals, digits, signs := 0, 0, 0, 0
	for _, r := range value {
		switch {
		case 'a' <= r && r <= 'z' || r >= 0x80:
			small++
		case 'A' <= r && r <= 'Z':
			capitals++
		case '0' <= r && r <= '9':
			digits++
		case r != '.' && r != '_':
			signs++
		}
	}
	kinds := 0
	for _, n := range [...]int{capitals, digits, signs} {
		if n > 0 {
			kinds++
		}
	}
	return kinds >= 2 || small+capitals >= 4 && digits >= 2
}

// isExample tells what stands for a password in an example.
func isExample(lower string) bool {
	return slices.Contains(examples, strings.TrimRight(lower, "0123456789!."))
}

// PIN tells whether a match ends in a personal number: four or five digits, seven or eight, not six, which are where letters go in India, and
// no measure, year or number of parts.
func PIN(text string, start, end int) bool {
	from, to := pinValue(text, start, end)
	n := len(strings.TrimLeft(text[from:to], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
	return n != 6 && !chainedBehind(text, end) && !measured.MatchString(text[end:min(len(text), end+16)])
}

// measured is a unit behind a number.
var measured = regexp.MustCompile(`^[ \d.,/%-]{0,3}(?i:[mckµ]?m|[mk]?[gvwa]|[mkg]?hz|[mkg]?b|cm|inch(?:es)?|in|feet|ft|rpm|ohms?|bits?|bytes?|pixels?|px|times|pieces|digits|characters|percent|years?|days?|euros?|dollars?|usd|eur)\b`)

func pinValue(text string, start, end int) (from, to int) {
	from = end
	for from > start && isAlnum(text[from-1]) {
		from--
	}
	return from, end
}

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
func PasswordSaid(text string, start, end int) bool {
	return saidAtEnd(text, start, end, passwordHead) != ""
}

// KeySaid is PasswordSaid for a key, and its first twelve characters.
func KeySaid(text string, start, end int) bool {
	value := saidAtEnd(text, start, end, keyHead)
	lower := strings.ToLower(value)
	ofWords := slices.ContainsFunc([]string{"token", "secret", "key", "password", "example"}, func(w string) bool { return strings.Contains(lower, w) })
	return value != "" && !ofWords && (start == 0 || text[start-1] != ':')
}

// saidAtEnd gives the secret that a match ends in, "" where it ends in none.
func saidAtEnd(text string, start, end, head int) string {
	from, to, quoted := valueAtEnd(text, start, end, head)
	value := text[from:to]
	if len(value) < head || !isPassword(value, quoted) || !strong(value) || userinfo.MatchString(text[start:end]) {
		return ""
	}
	return value
}

// ownName is what a password is called, in the place of one.
var ownName = regexp.MustCompile(`^[a-z_-]*(?:passw(?:or)?d|pwd)[a-z_-]*\d?$`)

// userinfo is a user and a password in an address; what stands behind them is a port.
var userinfo = regexp.MustCompile(`^[\w.-]+:[^\s/]+@`)

// PasswordGiven tells whether a match that ends with the first six characters of a value ends in a password: of what a command or a statement
// takes for one, were it a word.
func PasswordGiven(text string, start, end int) bool {
	from, to, quoted := valueAtEnd(text, start, end, passwordHead)
	value := text[from:to]
	lower := strings.ToLower(value)
	if ownName.MatchString(lower) {
		return false
	}
	return len(value) >= passwordHead && !isPlaceholder(lower) && !isReference(lower) && !isExample(lower) && (quoted || !code.MatchString(value)) &&
		strings.IndexByte("$%{[<-/\\", value[0]) < 0 && strings.ContainsAny(lower, "abcdefghijklmnopqrstuvwxyz")
}

// PasswordQuoted is PasswordSaid for a value in quotation marks, in a program, where it must not look like a word. Of the arguments of a call that
// follow each other it is the first one that is a password.
func PasswordQuoted(text string, start, end int) bool {
	from, to := quotedValue(text, start, end)
	return from < to
}

func quotedValue(text string, start, end int) (from, to int) {
	const most = 3 // arguments
	from, to, quoted := valueAtEnd(text, start, end, passwordHead)
	for range most {
		value := text[from:to]
		if quoted && isPassword(value, true) && !isExample(strings.ToLower(value)) && !strings.ContainsAny(value, " \t") && !charset.MatchString(value) && !strings.Contains(value, "://") && value[0] != '\\' && !strings.HasSuffix(value, "@") {
			return from, to
		}
		next := argument.FindString(text[to:min(len(text), to+most*passwordHead)])
		if next == "" {
			break
		}
		from = to + len(next)
		to = closing(text, from, text[from-1])
		if to < from {
			break
		}
	}
	return start, start
}

// argument is what stands between two arguments in quotation marks.
var argument = regexp.MustCompile(`^["']\s*,\s*["']`)

// charset is a name of a method or of a set of characters, a host, a file, a number of a version.
var charset = regexp.MustCompile(`^(?i:utf|latin|iso|sha|md|aes|rsa|hmac|base|bcrypt|argon|cp|gpt|v)[-_]?\d[\w.-]*$|^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*\.[a-z]{2,}(?::\d+)?$|^\d+(?:[.:-]\d+)+$|^[A-Z]+_[A-Z0-9_]*$`)

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
	`^(?i:[a-z]+[-_]?)?[vV]?\d+(?:[.:/_-]\d+)+[-.a-z]{0,10}\d{0,2}$`,
	`^\d+[-.,]?\d*[A-Za-z]{1,12}$`,
	`^[A-Z]?[a-z]{1,12}-?\d$|^[A-Z]+-?\d$|^[a-z]{1,12}-\d{1,3}$`,
	`^[A-Z]+_[A-Z0-9_]+$`,
	`^\^.*$|^.*(?:\(\?|\[[A-Za-z0-9]-[A-Za-z0-9]).*$`,
	`^[\w.-]+/[\w.-]+(?:[#?].*)?$`,
	`^\d{2,5}/.*$`,
	`^[@#:][\w-]+$`,
	`^[A-Za-z_:.-]+=$`,
	// Of code.
	`^(?:u?int|float|complex|varchar|char|vec|mat|x)\d{1,3}\w*$`,
	`^[$@+*{\\]*[\w.>-]+\[.*$|^\$[A-Z_]{2,}.*$|^[+*{\\].*[.\\].*$|^\$\w+::.*$`,
	`^[\w./-]*\??\w+=\w*(?:[,&]\w+=\w*)*$|^[A-Z_]+=.*$`,
	`^0x[0-9a-fA-F]+$|^[0-9a-f]{0,4}(?::[0-9a-f]{0,4})+$|^\d+(?:\.\d+)+\\.*$`,
	`^.*@[0-9a-f]{7,40}$|^//.*$|^.*[^,]*,[^,]*,.*$`,
	`^[^/]*/[^/]*/.*$`,
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

// PIN tells whether a match ends in a personal number, and in no measure, number of parts, or six digits beside "PIN code" alone, which are where
// letters go in India.
func PIN(text string, start, end int) bool {
	from, to := pinValue(text, start, end)
	n := len(strings.TrimLeft(text[from:to], "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
	match := strings.ToLower(text[start:from])
	postal := n == 6 && strings.HasPrefix(match, "pin") && strings.Trim(match, "picodenumr :=-#") == ""
	return !postal && !otherCodes.MatchString(match) && !chainedBehind(text, end) && !measured.MatchString(text[end:min(len(text), end+16)])
}

// otherCodes are codes and pins that everybody may know.
var otherCodes = regexp.MustCompile(`\b(?:errors?|status|exit|zip|postal\w*|post ?code|area|country|product|item|article|dialling|hex|colou?r|html|http|fehler\w*|postleitzahl|vorwahl|artikel\w*|producto|prodotto|produit|kleur|rabatt\w*|discount|promo\w*|voucher|coupon|building|hs|tax|sort|swift|airport)\b`)

// measured is a unit behind a number.
var measured = regexp.MustCompile(`^[ \d.,/%-]{0,3}(?i:[mckµ]?m|[mk]?[gvwa]|[mkg]?hz|[mkg]?b|cm|inch(?:es)?|in|feet|ft|rpm|ohms?|bits?|bytes?|pixels?|px|times|pieces|digits|characters|percent|years?|days?|euros?|dollars?|usd|eur)\b`)

func pinValue(text string, start, end int) (from, to int) {
	from = end
	for from > start && isAlnum(text[from-1]) {
		from--
	}
	return from, end
}

// SeedPhrase tells whether a match ends in the first words of those that a wallet is restored from: twelve to twenty-four, of three to eight
// letters each (BIP 39), none of them one that sentences are made of.
func SeedPhrase(text string, start, end int) bool {
	from, to := seedValue(text, start, end)
	words := seedWord.FindAllString(text[from:to], -1)
	return len(words) >= 12 && len(words) <= 24 && !slices.ContainsFunc(words, func(w string) bool { return slices.Contains(sentenceWords, w) })
}

var (
	seedWord  = regexp.MustCompile(`[a-z]{3,8}`)
	seedWords = regexp.MustCompile(`^(?:(?:\d{1,2}[.):]?\s?)?[a-z]{3,8}[,;]?\s{0,2}){12,25}`)
	// None of these is on the list of BIP 39.
	sentenceWords = []string{"the", "and", "for", "with", "your", "are", "not", "but", "was", "has", "have", "had", "from", "they", "which", "should", "never", "them", "these", "those", "their", "our", "his", "her",
		"who", "when", "where", "into", "its", "may", "might", "would", "could", "been", "being", "were", "also", "any"}
)

// seedValue gives the words: from the last sign that leads to them.
func seedValue(text string, start, end int) (from, to int) {
	at := seedLead.FindStringIndex(text[start:end])
	if at == nil {
		return start, start
	}
	from = start + at[1]
	found := seedWords.FindString(text[from:min(len(text), from+400)])
	return from, from + len(strings.TrimRight(found, " \t\r\n,;"))
}

var seedLead = regexp.MustCompile("(?i)^.{4,}?(?:[:=\"'`]|\\b(?:is|are|ist|lautet|sind))[\\s:\"'`]*")

// DigitsKey tells whether a match ends in a key of sixteen to twenty-four digits.
func DigitsKey(text string, start, end int) bool {
	from, to := digitsAtEnd(text, start, end)
	n := len(digits(text[from:to]))
	return n >= 16 && n <= 24 && !chainedBehind(text, end)
}

func digitsAtEnd(text string, start, end int) (from, to int) {
	from = end
	for from > start && (isDigit(text[from-1]) || contains(" -", text[from-1])) {
		from--
	}
	return from + len(text[from:end]) - len(strings.TrimLeft(text[from:end], " -")), end
}

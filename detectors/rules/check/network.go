package check

import (
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Email tells whether an @ with a domain behind it, which is the match, has a mailbox before it. A handle of
// a social network (@name@host), a package with its version, a picture's scale (@2x.png), git's remote and the
// password or token of an address (https://name:password@host) are none.
func Email(text string, start, end int) bool {
	from, _ := emailValue(text, start, end)
	if from == start || from > 0 && (text[from-1] == '@' || text[from-1] == '/' && from > 1 && text[from-2] != '/' && text[from-2] != ':') {
		return false
	}
	local := text[from:start]
	if signsIn(text, from, local) {
		return false
	}
	if len(local) > 64 || strings.Contains(local, "..") || strings.HasSuffix(local, ".") || strings.Trim(local, "._%+-'") == "" {
		return false
	}
	domain := strings.ToLower(strings.TrimPrefix(text[start:end], "@"))
	first, tld, _ := strings.Cut(domain, ".")
	if len(first) > 0 && isDigit(first[0]) && (strings.HasSuffix(first, "x") || len(digits(tld)) > 0) {
		return false
	}
	if end < len(text) && (text[end] == '@' || local == "git" && text[end] == ':') {
		return false
	}
	return end == len(text) || !(text[end] == '.' || text[end] == '-' || text[end] == '_') || end+1 == len(text) || !isAlnum(text[end+1])
}

// signsIn tells whether what stands before the @ is a secret in the address of a service.
func signsIn(text string, from int, local string) bool {
	before := text[max(0, from-96):from]
	scheme := strings.LastIndex(before, "://")
	if scheme < 0 {
		return false
	}
	user := before[scheme+len("://"):]
	return strings.HasSuffix(user, ":") && !strings.ContainsAny(user, "/@ \t\r\n") || user == "" && hasTokenPrefix(local)
}

// emailValue finds where the mailbox begins: before the @, or the "[at]" that stands for it. A mailbox may then have "[dot]" in it, too.
func emailValue(text string, start, end int) (from, to int) {
	if start == end || text[start] == '@' {
		return mailbox(text, start), end
	}
	for at := start; start-at < 96; {
		word := trimSpaces(text, at)
		begin := mailbox(text, word)
		if begin == word {
			return start, end
		}
		start = begin
		if at = beforeDot(text, trimSpaces(text, begin)); at < 0 {
			break
		}
	}
	return start, end
}

// trimSpaces goes back over spaces.
func trimSpaces(text string, at int) int { return len(strings.TrimRight(text[:at], " ")) }

// dots are how people write a dot in brackets.
var dots = []string{"dot", "punkt", "punto", "point", "ponto", "kropka"}

// beforeDot gives where a "[dot]" begins that ends at a place, -1 when none does.
func beforeDot(text string, at int) int {
	if at == 0 || strings.IndexByte("])}", text[at-1]) < 0 {
		return -1
	}
	from := strings.LastIndexAny(text[max(0, at-12):at], "[({")
	if from < 0 {
		return -1
	}
	from += max(0, at-12)
	if !slices.Contains(dots, strings.ToLower(strings.TrimSpace(text[from+1:at-1]))) {
		return -1
	}
	return from
}

// mailbox goes back over what a mailbox may hold; other letters than ASCII's may. A line break or tab that is written before it, as \n or \t, is none of it.
func mailbox(text string, from int) int {
	end := from
	latin, others := false, false // letters of one script make a mailbox
	for from > 0 && end-from < 96 {
		c := text[from-1]
		if c < utf8.RuneSelf {
			if isAlpha(c) {
				if others {
					break
				}
				latin = true
			}
			if !isAlnum(c) && strings.IndexByte("._%+-'", c) < 0 {
				break
			}
			from--
			continue
		}
		r, size := utf8.DecodeLastRuneInString(text[:from])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		if !unicode.In(r, unicode.Latin, unicode.Mn) {
			if latin {
				break
			}
			others = true
		}
		from -= size
	}
	if from+1 < end && escaped(text, from+1) {
		from++
	}
	for from < end && strings.IndexByte("'.%-", text[from]) >= 0 { // a quotation mark or a dash before it
		from++
	}
	return from
}

// IP tells whether the match is the address of a device: not loopback, unspecified, multicast or a mask, no
// network ("10.0.0.0/8"), and of version 4 not part of a version's number. Private and documentation ranges
// count: within a company they name a person's machine.
func IP(text string, start, end int) bool {
	start, end = ipValue(text, start, end)
	match := text[start:end]
	a, err := netip.ParseAddr(match)
	if err != nil || a.IsLoopback() || a.IsUnspecified() || a.IsMulticast() || chained(text, start, end) {
		return false
	}
	if network(text[end:]) || start > 0 && text[start-1] == ':' && a.Is6() || end+1 < len(text) && text[end] == ':' && (isAlnum(text[end+1]) || text[end+1] == ':') && a.Is6() {
		return false
	}
	if a.Is6() {
		return strings.Count(match, ":") >= 3 && len(digits(match)) >= 2
	}
	b := a.As4()
	if b[0] == 0 || b[0] == 255 || b[0] >= 240 {
		return false
	}
	if start > 0 && text[start-1] == '/' && (start < 2 || text[start-2] != '/') { // Chrome/120.0.0.0
		return false
	}
	if b[0] < 10 && b[1] < 10 && b[2] < 10 && b[3] < 10 {
		return saysIP(text, start)
	}
	return true
}

// ipValue leaves out a label before the address, and takes in what makes one of version 4 one of version 6 ("::ffff:").
func ipValue(text string, start, end int) (from, to int) {
	from = start + strings.LastIndexAny(text[start:end], " \t\r\n=\"'") + 1
	if strings.IndexByte(text[from:end], '.') > 0 {
		six := from
		for six > 0 && six > end-48 && (text[six-1] == ':' || isHex(text[six-1])) {
			six--
		}
		if _, err := netip.ParseAddr(text[six:end]); err == nil {
			from = six
		}
	}
	return from, end
}

func isHex(c byte) bool { return strings.IndexByte(anyHex, c) >= 0 }

// saysIP looks for the word before an address that might as well number a section.
func saysIP(text string, start int) bool {
	before := strings.ToLower(text[max(0, start-24):start])
	return strings.Contains(before, "ip") || strings.Contains(before, "dns") || strings.Contains(before, "addr") || strings.Contains(before, "host")
}

// network tells whether a prefix length follows that leaves more than one address.
func network(after string) bool {
	if len(after) < 2 || after[0] != '/' || !isDigit(after[1]) {
		return false
	}
	n := digits(after[:min(4, len(after))])
	return number(n) != 32 && number(n) != 128
}

// MAC tells whether the match is a hardware address: not of no or all devices, and not part of a
// fingerprint or of a time.
func MAC(text string, start, end int) bool {
	match := text[start:end]
	b := letters(match)
	if start > 0 && (isAlnum(text[start-1]) || start > 1 && contains(":-.", text[start-1]) && isAlnum(text[start-2])) {
		return false
	}
	if end < len(text) && (isAlnum(text[end]) || end+1 < len(text) && contains(":-.", text[end]) && isAlnum(text[end+1])) {
		return false
	}
	if len(b) != 12 || same(b) {
		return false
	}
	sign := match[2]
	if match[4] == '.' {
		return len(digits(match)) < 12
	}
	for i := 2; i < len(match); i += 3 {
		if match[i] != sign {
			return false
		}
	}
	return sign == ':' || len(digits(match)) < 12
}

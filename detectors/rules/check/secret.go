package check

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
)

// placeholders are parts of values that stand in documentation instead of a secret.
var placeholders = []string{
	"your_", "your-", "your.", "yourpass", "yoursecret", "yourkey", "yourtoken", "yourapi", "youruser", "yourname", "yourpw", "yourstrong", "xxxx", "***", "....", "placeholder", "changeme", "redacted", "<", "${", "#{", "{{", "$(", "enc[", "process.env",
	"os.environ", "os.getenv", "getenv(", "example_", "_here", "-here", "dummy", "insert_", "replace_",
}

// tokens are issuers' prefixes with their case and the characters that follow.
var tokens = []string{
	"AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_live_", "rk_live_",
	"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "AIza", "eyJ", "npm_", "hf_", "SG.",
}

// Secret tells whether the match is a credential and not a placeholder or code that reads one. A
// match with an issuer's prefix needs that prefix in its right case and mixed characters behind it;
// a labelled value ("password: …") needs a digit or a sign beside its letters. A match may hold the first characters only of what it
// found: the rest is read here, as far as it goes.
func Secret(text string, start, end int) bool {
	match := text[start:end]
	if strings.HasPrefix(match, blockBegin) {
		return end == len(text) || strings.IndexByte("\"'`”,", text[end]) < 0 // where only the line is spoken of
	}
	lower := strings.ToLower(match)
	for _, t := range tokens {
		switch {
		case !strings.HasPrefix(lower, strings.ToLower(t)):
		case !strings.HasPrefix(match, t): // the prefix in the wrong case
			if !strings.ContainsAny(match, ":= ") {
				return false
			}
		case t == "eyJ":
			return jwtEnd(text, start) > 0
		default:
			_, to := secretRange(text, start, end)
			rest := text[start+len(t) : to]
			return !isPlaceholder(strings.ToLower(rest)) && varied(rest)
		}
	}
	if isAddress(match) {
		return passwordOf(match)
	}
	return labelledSecret(text, start, end)
}

func isPlaceholder(lower string) bool {
	return slices.ContainsFunc(placeholders, func(p string) bool { return strings.Contains(lower, p) })
}

// varied tells a random token from a run of one character or a word.
func varied(s string) bool {
	var seen [256]bool
	kinds := 0
	for i := range len(s) {
		if !seen[s[i]] {
			seen[s[i]] = true
			kinds++
		}
	}
	return kinds >= 6 && (strings.ContainsAny(s, "0123456789") || shuffled(s) || len(s) == 16 && capitals(s) && kinds >= 8 && entropy(s) >= 2.8 && !wordy(s))
}

// wordy tells capitals of a placeholder from those of an identifier of AWS, one in thirty of which has no digits.
func wordy(s string) bool {
	return slices.ContainsFunc([]string{"EXAMPLE", "ACCESS", "KEY", "YOUR", "SECRET", "ABCDEF"}, func(w string) bool { return strings.Contains(s, w) })
}

// shuffled tells letters of both cases as chance mixes them from words, of those that have no digits: Hugging Face's tokens.
func shuffled(s string) bool {
	rises := 0
	for i := 1; i < len(s); i++ {
		if 'a' <= s[i-1] && s[i-1] <= 'z' && 'A' <= s[i] && s[i] <= 'Z' {
			rises++
		}
	}
	return len(s) >= 30 && rises >= 5 && entropy(s) >= 4
}

// mixed tells a password from an ordinary word, at the end of a sentence too.
func mixed(s string) bool {
	s = strings.TrimRight(s, "!?.")
	letters, others := false, false
	for i := range len(s) {
		switch c := s[i]; {
		case isAlpha(c) || c >= 0x80:
			letters = true
		case isDigit(c) || strings.IndexByte("!@#$%^&*+=?~", c) >= 0:
			others = true
		}
	}
	return letters && others
}

const blockBegin, blockEnd = "-----BEGIN", "-----END"

// secretRange gives what is to be masked: the value behind a label, a key's whole block, an issuer's whole token, else the match.
func secretRange(text string, start, end int) (from, to int) {
	match := text[start:end]
	switch {
	case strings.HasPrefix(match, blockBegin):
		return start, end + keyBlock(text[end:])
	case strings.HasPrefix(match, "eyJ"):
		return start, max(end, jwtEnd(text, start))
	case hasTokenPrefix(match):
		return start, runOf(text, end, base64url)
	case isAddress(match):
		return start, runOf(text, end, alnum+".-")
	}
	from, to, _ = labelled(text, start, end)
	return from, to
}

// runOf gives how far the characters of an alphabet go on.
func runOf(text string, from int, alphabet string) int {
	for from < len(text) && strings.IndexByte(alphabet, text[from]) >= 0 {
		from++
	}
	return from
}

// isAddress tells scheme://user:password@host.
func isAddress(match string) bool {
	scheme, _, ok := strings.Cut(match, "://")
	return ok && strings.Trim(scheme, alnum+"+") == ""
}

// stores are schemes whose addresses hold a password that is one, were it a word.
var stores = []string{"postgres", "postgresql", "mysql", "mariadb", "mongodb", "redis", "rediss", "amqp", "amqps", "mssql", "sqlserver", "oracle", "clickhouse", "cassandra", "ldap", "ldaps", "ftp", "sftp", "smtp", "smtps"}

// examples are what stands for a password in an example of an address.
var examples = []string{"password", "passwd", "passw0rd", "secret", "example", "pass", "user", "mypassword", "mysecretpassword", "mypass", "token", "username", "changeit"}

// passwordOf tells whether an address holds a password and no placeholder for one.
func passwordOf(address string) bool {
	scheme, rest, _ := strings.Cut(address, "://")
	rest, _, _ = strings.Cut(rest, "@")
	_, value, _ := strings.Cut(rest, ":")
	lower := strings.ToLower(value)
	scheme, _, _ = strings.Cut(strings.ToLower(scheme), "+") // of a driver: postgresql+asyncpg
	if !slices.Contains(stores, scheme) {
		return isPassword(value, true)
	}
	return len(value) >= 6 && !isPlaceholder(lower) && !slices.Contains(examples, lower)
}

// keyBlock measures what belongs to a key after its first line: up to the last line, or as far as
// there are long words of base64.
func keyBlock(rest string) (end int) {
	part := rest[:min(len(rest), 16<<10)]
	if i := strings.Index(part, blockEnd); i >= 0 {
		end = i + len(blockEnd)
		if j := strings.Index(part[end:], "-----"); j >= 0 && j < 64 {
			end += j + len("-----")
		}
		return end
	}
	for {
		from := len(part) - len(strings.TrimLeft(part[end:], " \t\r\n\\"))
		n := len(part[from:]) - len(strings.TrimLeft(part[from:], base64std))
		if n < 16 {
			return end
		}
		end = from + n
	}
}

func hasTokenPrefix(match string) bool {
	return slices.ContainsFunc(tokens, func(t string) bool { return strings.HasPrefix(match, t) })
}

// jwtEnd gives where a JSON web token ends that begins at a place, -1 where there is none: its first part decodes to an object with "alg"; two
// more follow, four of one that is encrypted ("enc").
func jwtEnd(text string, start int) int {
	end := runOf(text, start, base64url)
	raw, err := base64.RawURLEncoding.DecodeString(text[start:end])
	if err != nil {
		return -1
	}
	var header struct{ Alg, Enc string }
	if json.Unmarshal(raw, &header) != nil || header.Alg == "" {
		return -1
	}
	more := 2
	if header.Enc != "" {
		more = 4
	}
	for ; more > 0; more-- {
		if end == len(text) || text[end] != '.' {
			return -1
		}
		end = runOf(text, end+1, base64url)
	}
	if text[end-1] == '.' { // alg none: it signs nothing
		return -1
	}
	return end
}

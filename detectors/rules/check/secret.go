package check

import (
	"slices"
	"strings"
)

// placeholders are parts of values that stand in documentation instead of a secret.
var placeholders = []string{
	"your", "xxxx", "****", "....", "placeholder", "changeme", "redacted", "<", "${", "{{", "$(", "process.env",
	"os.environ", "os.getenv", "getenv(", "example_", "_here", "-here", "dummy", "insert_", "replace_",
}

// tokens are issuers' prefixes with their case and the characters that follow.
var tokens = []string{
	"AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_live_", "rk_live_",
	"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "AIza", "eyJ", "npm_", "hf_", "SG.",
}

// Secret tells whether the match is a credential and not a placeholder or code that reads one. A
// match with an issuer's prefix needs that prefix in its right case and mixed characters behind it;
// a labelled value ("password: …") needs a digit or a sign beside its letters.
func Secret(text string, start, end int) bool {
	match := text[start:end]
	lower := strings.ToLower(match)
	if strings.Contains(lower, "private key") {
		return true
	}
	for _, t := range tokens {
		if rest, ok := strings.CutPrefix(match, t); ok {
			return !isPlaceholder(strings.ToLower(rest)) && varied(rest)
		}
		if strings.HasPrefix(lower, strings.ToLower(t)) && !strings.ContainsAny(match, ":= ") {
			return false // the prefix in the wrong case
		}
	}
	value := secretValue(match)
	return len(value) >= 6 && !isPlaceholder(strings.ToLower(value)) && mixed(value)
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
	return kinds >= 6 && strings.ContainsAny(s, "0123456789")
}

// mixed tells a password from an ordinary word.
func mixed(s string) bool {
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

// secretValue cuts the value out of "label: value", "label = value", "label is value" and
// "scheme://user:value@host".
func secretValue(match string) string {
	if _, rest, ok := strings.Cut(match, "://"); ok {
		rest, _, _ = strings.Cut(rest, "@")
		_, value, _ := strings.Cut(rest, ":")
		return value
	}
	value := ""
	if i := strings.IndexAny(match, ":="); i >= 0 {
		value = match[i+1:]
	} else if fields := strings.Fields(match); len(fields) > 1 {
		value = fields[len(fields)-1]
	}
	return strings.Trim(value, " \t\r\n\"'`=.,;")
}

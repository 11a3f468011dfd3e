package check

import (
	"encoding/base64"
	"encoding/json"
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
			if t == "eyJ" {
				return jwt(match)
			}
			return !isPlaceholder(strings.ToLower(rest)) && varied(rest)
		}
		if strings.HasPrefix(lower, strings.ToLower(t)) && !strings.ContainsAny(match, ":= ") {
			return false // the prefix in the wrong case
		}
	}
	value := secretValue(match)
	lower = strings.ToLower(value)
	return len(value) >= 6 && !isPlaceholder(lower) && !isReference(lower) && mixed(value)
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
	return kinds >= 6 && (strings.ContainsAny(s, "0123456789") || shuffled(s))
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

// elsewhere are what code reads a secret from.
var elsewhere = []string{"var.", "local.", "data.", "secrets.", "env.", "self.", "this.", "config.", "settings.", "module.", "params.", "each.", "vault."}

func isReference(lower string) bool {
	return slices.ContainsFunc(elsewhere, func(p string) bool { return strings.HasPrefix(lower, p) })
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
	from, to := labelled(match)
	return match[from:to]
}

// labelled gives where the value stands behind its label.
func labelled(match string) (from, to int) {
	const around = " \t\r\n\"'`=.,;"
	if i := strings.IndexAny(match, ":="); i >= 0 {
		from = i + 1
	} else if i := strings.LastIndexAny(strings.TrimRight(match, " \t\r\n"), " \t\r\n"); i >= 0 {
		from = i + 1
	} else {
		return 0, 0
	}
	to = len(strings.TrimRight(match, around))
	from += len(match[from:]) - len(strings.TrimLeft(match[from:], around))
	return min(from, to), to
}

const blockEnd = "-----END"

// secretRange gives what is to be masked: the value behind a label, a key's whole block, else the match.
func secretRange(text string, start, end int) (from, to int) {
	match := text[start:end]
	switch {
	case strings.HasPrefix(match, "-----BEGIN"):
		return start, end + keyBlock(text[end:])
	case strings.Contains(match, "://") || hasTokenPrefix(match):
		return start, end
	}
	if strings.HasPrefix(strings.ToLower(match), "authorization") { // the value follows the scheme's name
		return start + strings.LastIndexAny(match, " \t\r\n") + 1, end
	}
	from, to = labelled(match)
	if from == to {
		return start, end
	}
	return start + from, start + to
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

// jwt tells whether the match is a JSON web token: its first part decodes to an object with "alg".
func jwt(match string) bool {
	head, _, _ := strings.Cut(match, ".")
	raw, err := base64.RawURLEncoding.DecodeString(head)
	if err != nil {
		return false
	}
	var header struct {
		Alg string `json:"alg"`
	}
	return json.Unmarshal(raw, &header) == nil && header.Alg != ""
}

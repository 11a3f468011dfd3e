package check

import (
	"math"
	"strings"
)

// vendorTokens are issuers' prefixes as they are written, and the characters that may follow.
var vendorTokens = []struct{ prefix, alphabet string }{
	{"ya29.", base64url}, {"GOCSPX-", base64url}, {"AKIA", upperDigits}, {"whsec_", base64std}, {"sk_test_", alnum}, {"rk_test_", alnum}, {"pk_live_", alnum},
	{"SK", lowerHex}, {"key-", lowerHex}, {"dop_v1_", lowerHex}, {"doo_v1_", lowerHex}, {"shpat_", anyHex}, {"shpss_", anyHex}, {"shpca_", anyHex},
	{"sq0atp-", base64url}, {"sq0csp-", base64url}, {"pypi-AgEI", base64url}, {"dckr_pat_", base64url}, {"dapi", lowerHex},
	{"lin_api_", alnum}, {"secret_", alnum}, {"ntn_", alnum}, {"figd_", base64url}, {"ATATT3", base64std}, {"hvs.", base64url}, {"hvb.", base64url},
	{"glsa_", base64url}, {"glc_", base64std}, {"PMAK-", base64url}, {"gsk_", alnum}, {"r8_", alnum}, {"xai-", alnum}, {"AGE-SECRET-KEY-1", upperDigits},
	{"tskey-", base64url}, {"sntrys_", base64std}, {"nvapi-", base64url}, {"pplx-", alnum}, {"xapp-", base64url}, {"EAACEdEose0cBA", alnum},
	{"xoxe", base64url + "."}, {"tvly-", base64url}, {"lsv2_pt_", base64url}, {"lsv2_st_", base64url}, {"pcsk_", base64url}, {"dp.pt.", base64url}, {"pscale_pw_", base64url},
	{"pscale_tkn_", base64url}, {"NRAK-", upperDigits}, {"HRKU-", base64url}, {"EAAG", alnum}, {"rubygems_", lowerHex},
	{"sqa_", lowerHex}, {"sqp_", lowerHex}, {"squ_", lowerHex}, {"pk.eyJ", base64url + "."}, {"sk.eyJ", base64url + "."},
	{"https://hooks.slack.com/services/", base64std}, {"https://discord.com/api/webhooks/", base64url + "/"}, {"https://discordapp.com/api/webhooks/", base64url + "/"},
}

const (
	upperDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	alnum       = upperDigits + "abcdefghijklmnopqrstuvwxyz"
	base64url   = alnum + "_-"
	base64std   = base64url + "+/="
	lowerHex    = "0123456789abcdef"
	anyHex      = lowerHex + "ABCDEF"
)

// leastEntropy, in bits a character, of what stands behind a prefix: random text of 16 characters or more
// has more, words and counted digits have less.
const leastEntropy = 2.8

// Token tells whether the match is an issuer's token, or its beginning: its prefix in the right case, the characters that
// the issuer uses, and enough entropy. A bot token ("123456789:AA…") has a number for a prefix, "/bot" before it in an address.
func Token(text string, start, end int) bool {
	from, to := tokenValue(text, start, end)
	token := text[from:to]
	if from == start && chained(text, from, to) {
		return false
	}
	if id, rest, ok := strings.Cut(token, ":AA"); ok && len(digits(id)) == len(id) {
		return random(rest)
	}
	for _, t := range vendorTokens {
		rest, ok := strings.CutPrefix(token, t.prefix)
		if ok && strings.Trim(rest, t.alphabet) == "" && random(rest) {
			return true
		}
	}
	return false
}

// tokenValue gives the whole token: as far as its issuer's characters go on.
func tokenValue(text string, start, end int) (from, to int) {
	match := text[start:end]
	if bot, ok := strings.CutPrefix(strings.ToLower(match), "/bot"); ok {
		return end - len(bot), runOf(text, end, base64url)
	}
	for _, t := range vendorTokens {
		if strings.HasPrefix(match, t.prefix) {
			to = runOf(text, end, t.alphabet)
			return start, max(end, start+len(strings.TrimRight(text[start:to], ".")))
		}
	}
	return start, end
}

func random(s string) bool {
	return !isPlaceholder(strings.ToLower(s)) && strings.ContainsAny(s, "0123456789") && entropy(s) >= leastEntropy
}

// entropy is Shannon's, in bits a byte.
func entropy(s string) (bits float64) {
	var count [256]int
	for i := range len(s) {
		count[s[i]]++
	}
	for _, n := range count {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

package scan

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// The vocabulary of made-up rules and texts. Placeholders stand for slurs.
var (
	groups  = words("women|men|girls|boys|mothers|older workers|young people|boomers|muslims|christians|jews|hindus|immigrants|foreigners|disabled people|wheelchair users|gay people|lesbians|poor families|homeless people|non-native speakers|travellers|männer|personnes âgées")
	traits  = words("lazy|too emotional|bad drivers|not fit to lead|unreliable|dishonest|weak|naturally violent|a burden|slow learners|too old to learn|overpaid|dirty|greedy|hysterical|a security risk")
	actions = words("lead teams|vote|teach children|drive trucks|own property|hold office|work nights|be promoted|join the army|live here")
	nouns   = words("server|report|meeting|customer|table|index|release|function|budget|garden|recipe|train|window|lesson|contract|engine|survey|market|bridge|photo")
	verbs   = words("check|update|describe|move|open|measure|compare|replace|plan|clean|print|review")
	adjs    = words("small|new|open|slow|modern|simple|public|second|careful|green|common|useful")
	fixed   = []string{
		`\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b`, `\b\d{3}-\d{2}-\d{4}\b`, `\b(?:\d[ -]?){13,16}\b`, `\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b`,
		`\b(?:\d{1,3}\.){3}\d{1,3}\b`, `\bsk-[A-Za-z0-9]{20,64}\b`, `\b(?:password|pwd)\s*[:=]\s*\S{6,}`, `\b(?:[0-9A-F]{2}:){5}[0-9A-F]{2}\b`,
		`\b(deploy|publish|release)\b.*\b(model|checkpoint|weights)\b`, `\b(delete|drop|purge)\b.{0,40}\b(records|tables?|database|backups?)\b`, `\b(transfer|send|pay)\s+(?:[$€£]\s?\d[\d,.]*|\d[\d,.]*\s?(?:usd|eur|euros))`,
	}
)

func words(s string) []string { return strings.Split(s, "|") }

func one[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }

func some(r *rand.Rand, list []string, n int) string {
	var out []string
	for _, i := range r.Perm(len(list))[:n] {
		out = append(out, strings.ReplaceAll(list[i], " ", `\s+`))
	}
	return "(?:" + strings.Join(out, "|") + ")"
}

// makeRules gives n different patterns as rule packs hold them: half of them phrases, a quarter
// alternations, an eighth with gaps, the rest single words and shapes of personal data.
func makeRules(n int) []string {
	r := rand.New(rand.NewPCG(1, 1))
	rules, seen := append([]string{}, fixed...), map[string]bool{}
	for i := 0; len(rules) < n; i++ {
		g, p := some(r, groups, 3+r.IntN(4)), ""
		switch i % 8 {
		case 0, 1, 2, 3:
			p = one(r, groups) + " " + one(r, words("are|are all|should not|can't|must never")) + " " + one(r, append(traits, actions...)) + one(r, words("| at all| today| anyway"))
			p = `\b` + strings.ReplaceAll(p, " ", `\s+`) + `\b`
		case 4:
			p = `\b` + g + `\s+(?:are|is|were)\s+(?:all\s+|just\s+)?` + some(r, traits, 3) + `\b`
		case 5:
			p = `\b(?:hire|accept|serve)\s+(?:only|no)\s+` + g + `\b`
		case 6:
			p = `\b` + g + `\b` + one(r, []string{`.{0,40}`, `[^.!?\n]{0,60}`}) + `\b` + some(r, traits, 3) + `\b`
		case 7:
			p = fmt.Sprintf(`\bslur%03dx\b`, i)
		}
		if !seen[p] {
			seen[p] = true
			rules = append(rules, p)
		}
	}
	return rules[:n]
}

// makeText gives about 2 KB of harmless prose in which groups are spoken of.
func makeText(r *rand.Rand) string {
	var b strings.Builder
	for b.Len() < 2000 {
		switch r.IntN(10) {
		case 0:
			fmt.Fprintf(&b, "%s were part of the %s. ", one(r, groups), one(r, nouns))
		case 1:
			fmt.Fprintf(&b, "\n\n## The %s %s\n\n- **%d** items – “%s”\n", one(r, adjs), one(r, nouns), r.IntN(1000), one(r, nouns))
		default:
			fmt.Fprintf(&b, "You can %s the %s %s before the %s is %s, or %s it in %d days. ", one(r, verbs), one(r, adjs), one(r, nouns), one(r, nouns), one(r, adjs), one(r, verbs), r.IntN(90))
		}
	}
	return b.String()
}

// makeHits puts a few sentences that rules look for into prose.
func makeHits(r *rand.Rand) string {
	text := makeText(r)
	for range 3 {
		i := strings.IndexByte(text[r.IntN(len(text)/2):], ' ')
		text = text[:i] + " " + one(r, groups) + " are " + one(r, traits) + ", write to a@example.org " + text[i:]
	}
	return text
}

// makeAttack gives 2 KB made of nothing but the words of the rules.
func makeAttack(r *rand.Rand) string {
	var b strings.Builder
	for b.Len() < 2000 {
		b.WriteString(one(r, one(r, [][]string{groups, traits, actions, words("are|should|not|can't|all|hire|no|only|deploy|delete|slur007x|4111-11|sk-abc")})) + one(r, []string{" ", " ", " ", ". ", "\n"}))
	}
	return b.String()
}

func makeTexts(n int, f func(*rand.Rand) string) []string {
	r := rand.New(rand.NewPCG(2, 2))
	texts := make([]string, n)
	for i := range texts {
		texts[i] = f(r)
	}
	return texts
}

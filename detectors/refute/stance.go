package refute

import (
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// frames are the lists of words.yaml that [Stance] asks for. They are expressions, not of the scanner: it is asked for the few
// statements that a guard is about to drop, and where in a sentence they match is what matters.
type frames struct {
	assents, claims, confirms, sayers, agreements, agreementsNext *regexp.Regexp
	concessions, halfConcessions, concessionVetoes, gapVetoes     *regexp.Regexp
}

var framed = sync.OnceValue(func() *frames {
	var f map[string][]string
	if yaml.Unmarshal(file, &f) != nil {
		return nil
	}
	parts := make([]string, 0, 8)
	for _, name := range []string{"surely", "charge", "claim"} {
		parts = append(parts, "{"+name+"}", strings.Join(f[name], "|"))
	}
	fill := strings.NewReplacer(parts...)
	compile := func(form, name string) *regexp.Regexp {
		return regexp.MustCompile("(?i)" + strings.ReplaceAll(form, "%s", fill.Replace(strings.Join(f[name], "|"))))
	}
	lead := `^[\s"'(>*#\d.-]*?` + strings.Join(f["lead"], "|")
	return &frames{
		assents: compile(lead+"(?:%s)", "assents"), claims: compile(lead+"(?:%s)", "claims"),
		confirms: compile("(?:%s)(?:"+fill.Replace(strings.Join(f["confirm_ends"], "|"))+")", "confirms"),
		sayers:   compile(`(?:%s)((?:[\w'-]+ ){0,2})$`, "sayers"), agreements: compile(`(?:%s)(?:[.!,;")]|$| (?:because|about|as|weil)\b)`, "agreements"),
		agreementsNext: compile(whole, "agreements_next"),
		concessions:    compile(lead+"(?:%s)", "concessions"), halfConcessions: compile(lead+"(?:%s)", "half_concessions"),
		concessionVetoes: compile(anywhere, "concession_vetoes"), gapVetoes: compile(anywhere, "gap_vetoes"),
	}
})

// maxGap is how many bytes may stand between a frame and the statement.
const maxGap = 40

// Stance gives the part of a sentence that its writer stands for, without the frame that affirms the statement sentence[start:end] or
// concedes something before it: "It's no myth that …", "The claim that … is accurate", "Some say that …, and they are right", "I know
// it's unlawful, but …". next is the text behind the sentence, which may agree with what somebody says in it. ok is false where there is no such frame.
//
// It is for guards, which take "myth" and "say that" for counter-speech and quotation: what they say of the part counts. It reads
// the normal form of a text, unlike Stated.
func Stance(sentence, next string, start, end int) (from, to int, ok bool) {
	f := framed()
	if f == nil {
		return 0, 0, false
	}
	before, after := sentence[:start], sentence[end:]
	if m := f.concessions.FindStringIndex(before); m != nil {
		return m[1], len(sentence), true
	}
	if strings.HasSuffix(strings.TrimRight(sentence, "\"') \n"), "?") {
		return 0, 0, false
	}
	if m := f.halfConcessions.FindStringIndex(before); m != nil && !f.concessionVetoes.MatchString(before[:m[1]]) {
		return m[1], len(sentence), true
	}
	if m := f.assents.FindStringIndex(before); m != nil && f.joined(before[m[1]:]) {
		return m[1], len(sentence), true
	}
	if m := f.claims.FindStringIndex(before); m != nil && f.joined(before[m[1]:]) {
		if c := f.confirms.FindStringIndex(after); c != nil && f.closed(before[:m[1]], after[:c[0]]) {
			return m[1], end + len(strings.TrimRight(after[:c[0]], ` ",`)), true
		}
	}
	// Agreement is with what the sentence says, so where that is a denial, it is the denial that is agreed with.
	if m := f.sayers.FindStringSubmatchIndex(before); m != nil && !f.gapVetoes.MatchString(before[:m[0]]) && f.joined(before[m[2]:]) {
		if c := f.agreements.FindStringIndex(after); c != nil && f.joined(strings.Trim(after[:c[0]], ` ",`)) {
			return start, end + c[0], true
		}
		if f.joined(strings.Trim(after, "\"'.!,) \n")) && f.agreed(next) {
			return start, len(sentence), true
		}
	}
	return 0, 0, false
}

// joined tells that nothing stands between a frame and the statement but words that belong to it.
func (f *frames) joined(gap string) bool { return len(gap) <= maxGap && !f.gapVetoes.MatchString(gap) }

// closed tells that what stands between a statement and its verdict ends the quotation that was opened, and nothing else.
func (f *frames) closed(opening, gap string) bool {
	if strings.HasSuffix(opening, `"`) {
		return strings.Contains(gap, `"`) && f.joined(strings.Trim(strings.Replace(gap, `"`, "", 1), ` .!,`))
	}
	return f.joined(strings.TrimRight(gap, " ,"))
}

// agreed tells that the next sentence, on the same line, agrees.
func (f *frames) agreed(next string) bool {
	next, _, _ = strings.Cut(next, "\n")
	next = strings.TrimLeft(next, ` "`)
	return next != "" && f.agreementsNext.MatchString(next[:firstSentence(next)])
}

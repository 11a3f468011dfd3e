// Package refute tells whether the text around a statement says that it is wrong, a prejudice, or an example of what is not
// allowed: "Myth: …", the cell of a table headed "Stereotype", an item below "Comments we removed:", a question answered with
// "No", a record whose label says hate, words that somebody takes back in the next sentence.
//
// It reads the original text, for tables, headings, lists and records have lost their form in the normal one, some two thousand
// bytes to either side of a finding. Guards of rules look at the words of a statement's own sentence; this looks beyond it, over
// lines, cells and fields, alike for rules and learned detectors.
//
// What turns a text round counts against it: "Myth: women can lead", "Should women be allowed to lead? No.", "Stereotypes that
// are true:", "is_biased": false. Where it is unclear what is denied, nothing is refuted, so a finding stays. The words stand in
// words.yaml.
//
// It is asked for findings alone; an answer takes some 40 to 190 µs (BenchmarkStated) and never more than a look at the 4 KB around.
package refute

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// reach is how many bytes to either side of a finding are looked at.
const reach = 2048

// Stated tells whether the text around text[start:end], bytes of the original, refutes what is stated there.
func Stated(text string, start, end int) bool {
	if start < 0 || end > len(text) || start >= end {
		return false
	}
	all := words()
	if all == nil {
		return false
	}
	w := &asking{lexicon: all}
	v := look(text, start, end)
	if v.recorded(w) {
		return true
	}
	if v.affirmed(w) {
		return false
	}
	return v.asked(w) || v.labelled(w) || v.judged(w) || v.listed(w) || v.tabled(w) || v.prefaced(w)
}

// view is a finding with what surrounds it.
type view struct {
	text       string // the window of the original
	start, end int    // the finding in it
	from, to   int    // its sentence, of a table's cell at most
	lineFrom   int    // the line or cell that it stands in
	lineTo     int
	row        []string // the cells of its row; nil: it stands in no table
	column     int

	before, stated, after string   // in its line, without marks
	next                  []remark // sentences behind it
}

// remark is a sentence behind a finding.
type remark struct {
	text  string // without marks and label
	label string // "Fact", "MIRA": what stands before a colon at its line's beginning
	line  int    // how many lines further on it stands
}

func look(text string, start, end int) *view {
	from, to := max(0, start-reach), min(len(text), end+reach)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	v := &view{text: text[from:to], start: start - from, end: end - from}
	v.lineFrom, v.lineTo = lineStart(v.text, v.start), lineEnd(v.text, v.end)
	if row := v.text[lineStart(v.text, v.start):v.lineTo]; isRow(row) {
		v.cell(row)
	}
	v.string()
	v.sentence()
	v.before, v.stated, v.after = clean(v.text[v.lineFrom:v.from]), clean(v.text[v.from:v.to]), clean(v.text[v.to:v.lineTo])
	v.follow()
	return v
}

// cell narrows the line to the cell of the row that the finding stands in.
func (v *view) cell(row string) {
	at := lineStart(v.text, v.start)
	for i, c := range cells(row) {
		v.row = append(v.row, clean(c))
		if c == "" {
			continue
		}
		from := at + strings.Index(v.text[at:], c) // it is there: cells are parts of the row
		at = from + len(c)
		if from <= v.start && v.start < at {
			v.column, v.lineFrom, v.lineTo = i, from, max(at, v.end)
		}
	}
}

// string narrows the line to the string of JSON that the finding stands in.
func (v *view) string() {
	from := quoteBefore(v.text, v.start)
	if from < v.lineFrom || strings.IndexByte(v.text[v.start:v.end], '"') >= 0 {
		return
	}
	if _, _, ok := v.jsonKey(); !ok {
		return
	}
	v.lineFrom = from + 1
	for i := v.end; i < v.lineTo; i++ {
		if v.text[i] == '"' && v.text[i-1] != '\\' {
			v.lineTo = i
		}
	}
}

// sentence finds the sentence that the finding stands in.
func (v *view) sentence() {
	v.from, v.to = v.lineFrom, v.lineTo
	for i := v.lineFrom; i < v.start; i++ {
		if end, ok := sentenceEnd(v.text[:v.lineTo], i); ok && end <= v.start {
			v.from = end
		}
	}
	for v.from < v.start && v.text[v.from] == ' ' {
		v.from++
	}
	for i := max(v.start, v.end-4); i < v.lineTo; i++ {
		if end, ok := sentenceEnd(v.text[:v.lineTo], i); ok && end >= v.end {
			v.to = end
			return
		}
	}
}

// Bounds of what is looked at behind a finding.
const (
	maxRemarks   = 5
	maxNextLines = 8
)

// follow collects the sentences behind the finding: of its line or cell, of the row's next cells, of the next lines.
func (v *view) follow() {
	add := func(s string, line int) {
		label, rest := labelled(s)
		for rest != "" && len(v.next) < maxRemarks {
			end := firstSentence(rest)
			v.next = append(v.next, remark{strings.TrimSpace(rest[:end]), label, line})
			rest = strings.TrimSpace(rest[end:])
			label = ""
		}
	}
	add(v.after, 0)
	if v.row != nil {
		for _, c := range v.row[min(v.column+1, len(v.row)):] {
			add(c, 1)
		}
		return
	}
	at := lineEnd(v.text, v.end)
	for n := 1; n <= maxNextLines && at < len(v.text) && len(v.next) < maxRemarks; n++ {
		at = lineBreak(v.text, at)
		end := lineEnd(v.text, at)
		line := v.text[at:end]
		at = end
		if s := body(line); s != "" && !isTime(s) {
			add(s, n)
		}
	}
}

// affirmed tells that what comes next says that the statement is true.
func (v *view) affirmed(w *asking) bool {
	for i, r := range v.next {
		if i == 3 || r.line > 3 {
			break
		}
		if w.is(affirmations, w.without(reversed, r.text)) {
			return true
		}
	}
	return false
}

// asked tells that the statement is a question about something adverse that the next sentence denies.
func (v *view) asked(w *asking) bool {
	q := strings.TrimRight(v.stated, `"') `)
	if !strings.HasSuffix(q, "?") || len(v.next) == 0 {
		return false
	}
	_, q = labelled(q)
	a := v.next[0]
	if !w.is(denials, a.text) || a.line > 3 || w.is(denialVetoes, a.text) || len(v.next) > 1 && v.next[1].line <= a.line+1 && w.is(denialBacks, v.next[1].text) {
		return false
	}
	if _, rest, ok := strings.Cut(q, " "); ok && w.is(negations, rest) {
		return false
	}
	return w.is(adverse, q) && !w.allows(q)
}

// turned tells of a statement whose denial might be the bias: it grants something, or says two things.
func (v *view) turned(w *asking, s string) bool {
	return w.is(contrasts, s) || w.grants(s)
}

// grants tells that a statement says something good or denies something: "women can lead", "Roma are not thieves".
func (w *asking) grants(s string) bool {
	return w.allows(s) && !w.is(negations, s) || w.is(clears, s)
}

// allows tells that something is granted, or that wrongness itself is what is spoken about.
func (w *asking) allows(s string) bool {
	return w.is(permissive, w.without(beyond, s))
}

// labelled tells that a label names the statement as wrong.
func (v *view) labelled(w *asking) bool {
	label, s := labelled(v.before + v.stated)
	if v.before != "" && strings.TrimSpace(body(v.before)) != "" && label == "" {
		label, s = strings.TrimSpace(body(v.before)), v.stated
	}
	if label != "" && firstSentence(s) < len(s) && strings.TrimSpace(s[firstSentence(s):]) != "" {
		return false // the finding is in a further sentence
	}
	if w.is(crosses, v.before) || w.is(crosses, v.stated) && label == "" {
		return v.crossed(w)
	}
	if label == "" && strings.TrimSpace(body(v.before)) == "" {
		label, s = v.above(), v.stated
	}
	if label == "" || v.turned(w, s) {
		return false
	}
	label = numbered(label)
	switch {
	case w.is(labels, label):
		return true
	case w.is(weakLabels, label):
		return len(v.next) > 0 && (w.is(better, v.next[0].label) || w.is(ticks, v.next[0].text))
	}
	return false
}

// crossed tells that a statement behind a cross is wording that is not to be used, not a candidate who is turned down.
func (v *view) crossed(w *asking) bool {
	s := w.without(crosses, v.stated)
	if v.turned(w, s) {
		return false
	}
	for _, r := range v.next {
		if w.is(ticks, r.text) || w.is(better, r.label) {
			return strings.Contains(s, `"`) || w.is(fair, r.text)
		}
	}
	return false
}

// above gives the line above, if it is nothing but a label: "### Myth 2".
func (v *view) above() string {
	line, _, ok := v.lineAbove(v.lineFrom)
	s := body(line)
	if !ok || len(s) > 40 || strings.ContainsAny(s, ".!?") {
		return ""
	}
	return strings.TrimSuffix(s, ":")
}

// lineAbove gives the last line above byte at that is not blank, and where it begins.
func (v *view) lineAbove(at int) (line string, from int, ok bool) {
	for at = lineStart(v.text, at); at > 0; {
		end := at - 1
		if end > 0 && v.text[end] == 'n' && v.text[end-1] == '\\' {
			end--
		}
		at = lineStart(v.text, end)
		if s := v.text[at:end]; strings.TrimSpace(s) != "" {
			return s, at, true
		}
	}
	return "", 0, false
}

// judged tells that what comes next calls the statement false or a prejudice, or takes it back where it is somebody's words.
func (v *view) judged(w *asking) bool {
	next := v.next
	who := v.speaker()
	said := v.quoted(w)
	if len(next) > 0 && w.is(attributions, next[0].text) && !w.is(verdictVetoes, next[0].text) {
		said, next = true, next[1:]
	}
	if len(next) > 0 && strings.HasPrefix(strings.ToLower(next[0].text), "true or false?") {
		next = next[1:]
	}
	if w.grants(v.stated) || own(who) {
		return false
	}
	for i, r := range next {
		said = said || who != "" && r.label != "" && r.label != who // somebody else answers
		if i == 2 || r.line > 4 || i == 1 && !said {
			break
		}
		if own(r.label) || v.row != nil && r.line > 0 || !said && r.line > 2 {
			return false
		}
		if r.line == 0 && r.label != "" && w.is(verdicts, r.label+".") {
			return true // "Wrong: most of them …"
		}
		vetoed := w.is(verdictVetoes, r.text) || i+1 < len(next) && next[i+1].line == r.line && w.is(takenBack, next[i+1].text)
		if !vetoed && (w.is(verdicts, r.text) || said && w.is(rebukes, r.text)) {
			return i == 0 || v.next[0].line > 0 || said
		}
	}
	return false
}

// quoted tells that the statement is somebody else's words: it stands in quotation marks, or behind a colon and who said it.
func (v *view) quoted(w *asking) bool {
	s := strings.TrimSpace(v.before + v.stated)
	lead, _, colon := strings.Cut(s, ": ")
	if colon && w.is(sayings, lead) && !firstPerson.MatchString(lead) {
		return true
	}
	up := clean(v.text[v.lineFrom:min(v.start+1, v.end)])
	return (strings.Count(up, `"`)%2 == 1 || strings.HasPrefix(v.stated, `"`)) && !firstPerson.MatchString(up)
}

// speaker gives who says the statement in a dialogue.
func (v *view) speaker() string {
	label, _ := labelled(v.before + v.stated)
	if strings.Count(label, " ") > 1 || firstPerson.MatchString(label) {
		return ""
	}
	return label
}

// listed tells that the statement is an item of a list whose head names what it lists, or stands in quotation marks behind such a head.
func (v *view) listed(w *asking) bool {
	if w.grants(v.stated) {
		return false
	}
	own := v.before + v.stated
	if i := strings.Index(own, `: "`); i > 0 && v.headed(w, own[:i]) && v.inQuotes() {
		return true
	}
	line := v.text[lineStart(v.text, v.start):lineEnd(v.text, v.start)]
	if v.row != nil || !isItem(line) || strings.TrimSpace(body(v.before)) != "" {
		return false
	}
	head := v.head()
	switch {
	case head == "":
		return false
	case w.is(quizzes, head):
		return v.solved(w, line)
	}
	return v.headed(w, head)
}

// headed tells that the head of a list names what it lists as wrong.
func (v *view) headed(w *asking, head string) bool {
	return w.is(intros, head) && !w.is(introVetoes, unbanned.ReplaceAllString(head, ""))
}

// inQuotes tells that the finding stands within quotation marks of its line.
func (v *view) inQuotes() bool {
	before := clean(v.text[v.lineFrom:v.start]) + clean(v.text[v.start:v.end])
	return strings.Contains(before, `"`)
}

// maxItems bounds how many lines of a list are passed on the way to its head.
const maxItems = 40

// head gives the line above the list that the finding's line is of, without marks.
func (v *view) head() string {
	at := v.lineFrom
	for range maxItems {
		line, from, ok := v.lineAbove(at)
		if !ok {
			return ""
		}
		if !isItem(line) || isHeading(line) {
			s := body(line)
			if isHeading(line) || strings.HasSuffix(s, ":") || strings.HasSuffix(s, "?") || strings.HasSuffix(strings.TrimSpace(line), "**") {
				return strings.TrimRight(s, ": ")
			}
			return ""
		}
		at = from
	}
	return ""
}

// solved tells that the answer of a quiz is the finding's line.
func (v *view) solved(w *asking, line string) bool {
	mark := strings.ToLower(strings.Trim(strings.TrimSpace(line)[:min(3, len(strings.TrimSpace(line)))], "()*_-. "))
	if mark == "" {
		return false
	}
	rest := clean(v.text[v.lineTo:])
	m := w.find(quizAnswer, rest)
	return m != nil && strings.HasPrefix(mark, strings.ToLower(rest[m[2]:m[3]]))
}

// tabled tells that the column's head, or a cell of the row, names the statement as wrong.
func (v *view) tabled(w *asking) bool {
	if v.row == nil || w.grants(v.stated) || w.is(contrasts, v.stated) && !w.is(negations, v.stated) {
		return false
	}
	heads := v.heads()
	if heads == nil {
		return false
	}
	if v.column < len(heads) && w.is(wrongColumns, heads[v.column]) {
		for i, c := range v.row {
			if i != v.column && (w.is(affirmations, c) || w.is(good, c) && len(c) < 12) && !w.is(verdictCells, c) {
				return false
			}
		}
		return true
	}
	for i := v.column + 1; i < len(v.row) && i < len(heads); i++ {
		if w.is(verdictCells, v.row[i]) && !w.is(verdictVetoes, v.row[i]) && !strings.HasSuffix(v.stated, "?") && w.is(claimColumns, heads[v.column]) {
			return true
		}
	}
	return false
}

// heads gives the first row of the table.
func (v *view) heads() (heads []string) {
	at := lineStart(v.text, v.start)
	for at > 0 {
		from := lineStart(v.text, at-1)
		if !isRow(v.text[from : at-1]) {
			break
		}
		heads, at = nil, from
		for _, c := range cells(v.text[from:lineEnd(v.text, from)]) {
			heads = append(heads, clean(c))
		}
	}
	return heads
}

// prefaced tells that the statement's sentence begins with what distances itself from it: "Anyone who still thinks that … should …".
func (v *view) prefaced(w *asking) bool {
	m := w.find(prefaces, v.stated)
	if m == nil {
		return false
	}
	rest := v.stated[m[1]:]
	if strings.HasPrefix(strings.ToLower(v.stated[m[0]:]), "i ") || strings.HasPrefix(strings.ToLower(v.stated[m[0]:]), "ich ") {
		return !w.is(contrasts, rest)
	}
	need := w.find(prefaceNeeds, rest)
	return need != nil && !w.is(contrasts, rest) && !w.grants(rest[:need[0]])
}

// own tells of a speaker's name that it is the writer's.
func own(speaker string) bool {
	switch strings.ToLower(speaker) {
	case "i", "me", "ich", "assistant", "ai", "bot", "model", "chatbot", "chatgpt", "gpt", "claude", "agent", "system", "ki", "assistent", "answer", "antwort", "a", "response", "note", "decision", "recommendation", "reason", "summary":
		return true
	}
	return false
}

// body is a line without bullet, number, quotation bar, heading and marks.
func body(line string) string {
	s := strings.TrimSpace(line)
	for {
		before := s
		s = strings.TrimLeft(s, "#> \t*-+•·▪◦‣")
		if m := itemNumber.FindString(s); m != "" {
			s = s[len(m):]
		}
		if s == before {
			return clean(s)
		}
	}
}

// labelled parts a sentence, without marks, at the colon behind its first words.
func labelled(s string) (label, rest string) {
	s = body(s)
	i := strings.IndexByte(s, ':')
	if i <= 0 || i > 48 || i+1 < len(s) && s[i+1] != ' ' || strings.ContainsAny(s[:i], `.!?;"`) {
		return "", s
	}
	return strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+1:])
}

// numbered takes the number off a label: "Myth 3", "Myth #3".
func numbered(label string) string {
	return strings.TrimRightFunc(label, func(r rune) bool { return unicode.IsDigit(r) || r == '#' || r == ' ' || r == '.' })
}

// clean is text without marks of Markdown, its quotation marks those of ASCII and its white space single.
func clean(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	blank := true
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		i += size
		switch r {
		case '*', '`', '~', '\\', '|', '\u200b', '\ufeff', '\ufe0f':
			continue
		case '<':
			if end := strings.IndexByte(s[i:min(len(s), i+40)], '>'); end > 0 && (s[i] == '/' || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z') {
				i += end + 1
			}
			r = ' '
		case '“', '”', '„', '«', '»', '‟', '″':
			r = '"'
		case '’', '‘', '‚':
			r = '\''
		case '–', '—', '−':
			if !blank {
				b.WriteByte(' ')
			}
			b.WriteString("- ")
			blank = true
			continue
		case '_', '\u00a0', '\t', '\r', '\n':
			r = ' '
		}
		if r == ' ' {
			if !blank {
				b.WriteByte(' ')
			}
			blank = true
			continue
		}
		blank = false
		b.WriteRune(r)
	}
	return b.String()
}

// sentenceEnd says where the sentence ends whose end mark is at i, if it is one: at white space, behind quotation marks and brackets.
func sentenceEnd(s string, i int) (end int, ok bool) {
	switch s[i] {
	case '.', '!', '?':
	default:
		return 0, false
	}
	for end = i; end < len(s) && strings.IndexByte(".!?", s[end]) >= 0; end++ {
	}
	for end < len(s) {
		r, size := utf8.DecodeRuneInString(s[end:])
		if !strings.ContainsRune("\"'”’»“‘)]*_`\\", r) {
			break
		}
		end += size
	}
	if end < len(s) && s[end] != ' ' && s[end] != '\t' && s[end] != '\r' && s[end] != '<' {
		return 0, false
	}
	if s[i] == '.' && i > 0 && end < len(s) && (i == 1 || s[i-2] == ' ' || s[i-2] == '.' || s[i-2] == '\n') { // "1.", "e.g.", "J. Smith"
		return 0, false
	}
	return end, true
}

func firstSentence(s string) int {
	for i := range len(s) {
		if end, ok := sentenceEnd(s, i); ok {
			return end
		}
	}
	return len(s)
}

// Lines end at line breaks, those of strings of JSON, \n, too.
func lineStart(s string, i int) int {
	for ; i > 0; i-- {
		if s[i-1] == '\n' || i > 2 && s[i-1] == 'n' && s[i-2] == '\\' && s[i-3] != '\\' {
			return i
		}
	}
	return 0
}

func lineEnd(s string, i int) int {
	for ; i < len(s); i++ {
		if s[i] == '\n' || s[i] == '\\' && i+1 < len(s) && s[i+1] == 'n' && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return len(s)
}

// lineBreak is where the line begins behind the line break at i.
func lineBreak(s string, i int) int {
	if i < len(s) && s[i] == '\\' {
		return min(i+2, len(s))
	}
	return min(i+1, len(s))
}

func isRow(line string) bool {
	line = strings.TrimSpace(line)
	return strings.HasPrefix(line, "|") && strings.Count(line, "|") > 1
}

// cells are those of a row of a table.
func cells(row string) []string {
	row = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(row), "|"), "|")
	cs := strings.Split(row, "|")
	for i := range cs {
		cs[i] = strings.TrimSpace(cs[i])
	}
	return cs
}

// isItem tells of a line that it is one of a list, or a quotation that stands by itself.
func isItem(line string) bool {
	s := strings.TrimSpace(line)
	if s == "" {
		return false
	}
	if strings.IndexByte("-+>", s[0]) >= 0 || strings.HasPrefix(s, "* ") || itemNumber.MatchString(s) {
		return true
	}
	r, _ := utf8.DecodeRuneInString(s)
	return strings.ContainsRune(`•·▪◦‣"“„«`, r)
}

func isHeading(line string) bool { return strings.HasPrefix(strings.TrimSpace(line), "#") }

// isTime tells of a line that it only numbers or times a subtitle.
func isTime(s string) bool { return strings.Trim(s, "0123456789:,.->[] ") == "" }

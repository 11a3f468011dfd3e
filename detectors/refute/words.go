package refute

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/detectors/scan"
)

//go:embed words.yaml
var file []byte

// list is one of the lists of patterns in words.yaml.
type list int

const (
	labels list = iota
	weakLabels
	better
	crosses
	ticks
	fair
	intros
	introVetoes
	quizzes
	quizAnswer
	verdicts
	takenBack
	rebukes
	sayings
	attributions
	verdictVetoes
	affirmations
	denials
	denialBacks
	denialVetoes
	adverse
	permissive
	negations
	clears
	beyond
	reversed
	contrasts
	prefaces
	prefaceNeeds
	bad
	good
	wrongColumns
	claimColumns
	verdictCells
	numLists
)

// where a pattern of a list matches.
const (
	anywhere = "(?:%s)"
	begin    = `^["'(> ]*(?:%s)`
	whole    = `^["'( ]*(?:%s)["'): .?]*$`
)

var lists = [numLists]struct{ name, form string }{
	labels: {"labels", whole}, weakLabels: {"weak_labels", whole}, better: {"better", whole}, crosses: {"crosses", anywhere}, ticks: {"ticks", anywhere}, fair: {"fair", anywhere},
	intros: {"intros", whole}, introVetoes: {"intro_vetoes", anywhere}, quizzes: {"quizzes", anywhere}, quizAnswer: {"quiz_answer", anywhere},
	verdicts: {"verdicts", begin}, takenBack: {"taken_back", begin}, rebukes: {"rebukes", begin}, sayings: {"sayings", anywhere}, attributions: {"attributions", begin},
	verdictVetoes: {"verdict_vetoes", anywhere}, affirmations: {"affirmations", anywhere},
	denials: {"denials", begin}, denialBacks: {"denial_backs", begin}, denialVetoes: {"denial_vetoes", anywhere}, adverse: {"adverse", anywhere}, permissive: {"permissive", anywhere},
	negations: {"negations", anywhere}, clears: {"clears", anywhere}, beyond: {"beyond", anywhere}, reversed: {"reversed", anywhere}, contrasts: {"contrasts", anywhere},
	prefaces: {"prefaces", anywhere}, prefaceNeeds: {"preface_needs", anywhere}, bad: {"bad", anywhere}, good: {"good", anywhere},
	wrongColumns: {"wrong_columns", whole}, claimColumns: {"claim_columns", whole}, verdictCells: {"verdict_cells", whole},
}

// lexicon is the file, compiled.
type lexicon struct {
	scanner     *scan.Scanner // nil: none, and the expressions look
	owners      []list        // of the scanner's patterns
	expressions [numLists]func() *regexp.Regexp

	verdictKeys, flagKeys, textKeys, ownKeys, auditKeys map[string]bool
}

// asking is the lexicon with what it said of the texts around one finding.
type asking struct {
	*lexicon
	found []scan.Match
	said  []said
}

type said struct {
	text string
	of   [numLists]bool
}

// is tells whether a pattern of the list matches the text.
func (w *asking) is(l list, text string) bool {
	if w.scanner == nil {
		return w.expressions[l]().MatchString(text)
	}
	for i := range w.said {
		if w.said[i].text == text {
			return w.said[i].of[l]
		}
	}
	s := said{text: text}
	w.found = w.scanner.Scan(text, w.found[:0])
	for _, m := range w.found {
		s.of[w.owners[m.Pattern]] = true
	}
	w.said = append(w.said, s)
	return s.of[l]
}

// without is the text without what the list's patterns match.
func (w *asking) without(l list, text string) string {
	if !w.is(l, text) {
		return text
	}
	return w.expressions[l]().ReplaceAllString(text, "")
}

// find gives where a pattern of the list matches first, nil where none does.
func (w *asking) find(l list, text string) []int {
	if !w.is(l, text) {
		return nil
	}
	return w.expressions[l]().FindStringSubmatchIndex(text)
}

var (
	itemNumber  = regexp.MustCompile(`^\(?(?:\d{1,3}|[A-Za-z])[.)]\s+`)
	firstPerson = regexp.MustCompile(`(?i)\b(?:i|we|me|my|our|ich|wir|mein\w*|unser\w*)\b.{0,40}\b(?:say|said|think|thought|believe|told|tell|know|write|wrote|add|recommend|advise|conclude|view|opinion|sage|denke|meine|glaube|schreibe|empfehle|meinung)\b|^(?:(?:my|our|in my) (?:\w+ )?(?:view|opinion|verdict|take)|meine (?:meinung|ansicht)|note|summary|recommendation|reason|assessment|conclusion|decision|advice|answer|tip|fact|truth)\b`)
	unbanned    = regexp.MustCompile(`(?i)\b(?:not to (?:say|use|write|post)|(?:not|never) (?:acceptable|allowed|permitted)|(?:should|must) (?:not|never) (?:say|write|post)|never to say|(?:racis[tm]|violat\w+) facts?)\b`)
)

// words compiles the file when a finding first asks; a test holds that it can be.
var words = sync.OnceValue(func() *lexicon {
	var f map[string][]string
	if yaml.Unmarshal(file, &f) != nil {
		return nil
	}
	w := &lexicon{verdictKeys: set(f["verdict_keys"]), flagKeys: set(f["flag_keys"]), textKeys: set(f["text_keys"]), ownKeys: set(f["own_keys"]), auditKeys: set(f["audit_keys"])}
	var patterns []string
	for l := range numLists {
		var all []string
		for _, p := range f[lists[l].name] {
			all = append(all, p)
			patterns, w.owners = append(patterns, fmt.Sprintf(lists[l].form, p)), append(w.owners, l)
		}
		whole := "(?i)" + fmt.Sprintf(lists[l].form, strings.Join(all, "|"))
		w.expressions[l] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(whole) })
	}
	if s, err := scan.Compile(patterns, scan.Options{MaxStates: maxStates}); err == nil {
		w.scanner = s
	}
	return w
})

// maxStates bounds the scanner's memory to some megabytes.
const maxStates = 8192

// Warm compiles the words, so that the first finding does not wait.
func Warm() {
	if w := words(); w != nil && w.scanner != nil {
		w.scanner.Warm()
	}
	framed()
}

func set(words []string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// Version changes whenever the same text may be refuted or not: what the words and this package's code say.
func Version() string {
	sum := sha256.Sum256(file)
	return fmt.Sprintf("%s-%s", code, hex.EncodeToString(sum[:4]))
}

// code is raised with every change of the code that changes an answer.
const code = "2026.11.2"

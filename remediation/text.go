package remediation

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// words are the templates of what people read.
var words = template.Must(template.New("").Funcs(template.FuncMap{
	"stamp": stamp, "between": between, "percent": percent, "count": count, "code": code, "chance": chance,
}).ParseFS(templates, "templates/*.tmpl"))

// said is a breach as the templates see it. Of a blind one N were received and K of them not analysed.
type said struct {
	*audit.Breach
	Blind, Often, Critical          bool
	What, News, Advice, Query, Tier string
	Shown                           string // how many of the interactions are examples: "10 of 44", "" where all are
	Watched                         string // what is looked at once the issue is closed
	Tally                           string // counts K and N again, "" where nothing was
	Links                           []link
}

func (p Policy) say(name string, b *audit.Breach, prev audit.BreachState) string {
	var out strings.Builder
	s := said{Breach: b, Blind: b.Tier == audit.TierBlind, Often: b.Tier == audit.TierMitigation, Critical: b.Tier == audit.TierPolicy, What: what(b), News: news(b, prev), Advice: advice(b), Query: query(b), Tally: tally(b), Tier: tiers[b.Tier], Shown: shown(b), Watched: cmp.Or(watched[b.Tier], "its rate stays watched: if it returns, this issue is opened again"), Links: p.links(b)}
	if s.Tier == "" {
		s.Tier = code(string(b.Tier))
	}
	if err := words.ExecuteTemplate(&out, name+".md.tmpl", s); err != nil {
		return what(b) // golden files show that it does not happen
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// subject names what a breach is about, without markup.
func subject(b *audit.Breach) string {
	switch {
	case b.Tier == audit.TierBlind:
		return "analyses"
	case b.Kind == "":
		return "bias findings"
	}
	s := strings.NewReplacer(".", " ", "_", " ").Replace(strings.TrimPrefix(b.Kind, "charter."))
	if b.Group != "" && b.Tier == audit.TierRate {
		s += " (" + b.Group + ")"
	}
	return s + " findings"
}

// title is an issue's, in plain text.
func title(b *audit.Breach) string {
	where := string(b.Domain)
	if where == "" {
		where = "all domains"
	}
	t := subject(b) + " in " + where
	switch {
	case b.Tier == audit.TierBlind:
		t = "Too little is analysed in " + where
	case b.Tier == audit.TierPolicy:
		t = "Critical finding: " + strings.TrimSuffix(subject(b), " findings") + " in " + where
	case b.Tier == audit.TierMitigation:
		t = "Frequent mitigation: " + t
	case b.N > 0 && b.BaselineN > 0:
		t += ": " + percent(b.Rate) + " against " + percent(b.Baseline)
	case b.N > 0:
		t += ": " + percent(b.Rate)
	}
	const most = 200
	if r := []rune(t); len(r) > most {
		t = string(r[:most-1]) + "…"
	}
	return strings.ToUpper(t[:1]) + t[1:]
}

func what(b *audit.Breach) string {
	where := code(string(b.Domain))
	if b.Domain == "" {
		where = "all domains"
	}
	kind := "findings of any bias"
	if b.Kind != "" {
		kind = "findings of " + code(b.Kind)
	}
	if b.Group != "" && b.Tier == audit.TierRate {
		kind += ", rules " + code(b.Group) + ","
	}
	switch b.Tier {
	case audit.TierBlind:
		return "Too little of " + where + " is analysed for its rates to be believed: alarms of it are silent until this is mended."
	case audit.TierPolicy:
		return "Critical " + kind + " in " + where + "."
	case audit.TierMitigation:
		return "Mitigation is asked for again and again: " + kind + " in " + where + "."
	}
	return "The rate of " + kind + " in " + where + " departed from its baseline."
}

func news(b *audit.Breach, prev audit.BreachState) string {
	const close = " Close this issue if nothing is left to do."
	switch {
	case b.State == audit.BreachResolved && over[b.Reason] != "":
		return over[b.Reason] + close
	case b.State == audit.BreachResolved && ended[b.Reason] != "":
		who := "A person"
		if b.By != "" {
			who = code(b.By)
		}
		return who + " " + ended[b.Reason] + ": the breach is resolved." + close
	case b.State == audit.BreachResolved && b.Tier == audit.TierBlind:
		return "Enough is analysed again: the breach is resolved." + close
	case b.State == audit.BreachResolved:
		return "The rate has stayed near its baseline: the breach is resolved." + close
	case prev == audit.BreachMitigated:
		return "**The breach has returned** after this issue was closed."
	case prev == audit.BreachResolved:
		return "**The breach has returned** after it was resolved." // by its rate, or by a person: an earlier comment says so
	}
	return "The breach goes on: the same was found again."
}

// over says why a breach was resolved, where it is not for a rate near its baseline.
var over = map[string]string{
	"no_traffic":     "Nothing comes in any more: the breach is resolved.",
	"policy_changed": "The policy that opened the breach does not hold here any more: the breach is resolved.",
	"quiet":          "It has not come back since this issue was closed: the breach is resolved.",
	"rules_changed":  "The rules have another version, and rates under two versions are not comparable: the breach is resolved.",
}

// watched says what is looked at once the issue of a breach is closed, where it is not its rate.
var watched = map[audit.BreachTier]string{
	audit.TierPolicy: "such findings stay watched: at the next one this issue is opened again, and if none comes within the policy's `reopen` the breach is resolved",
	audit.TierBlind:  "coverage stays watched: if it falls again, this issue is opened again",
}

// shown says how many of the interactions that a breach counts are among its examples.
func shown(b *audit.Breach) string {
	if n := uint64(len(b.Events)); n < b.K {
		return count(n) + " of " + count(b.K)
	}
	return ""
}

// ended is what a person says who resolves a breach.
var ended = map[string]string{
	"fixed":    "says that the cause is mended",
	"noise":    "says that there was no cause",
	"accepted": "accepted the new rate as the usual one",
}

var tiers = map[audit.BreachTier]string{
	audit.TierRate:       "rate: the exact binomial test against the baseline, corrected for many tests",
	audit.TierPolicy:     "policy: one critical finding is enough",
	audit.TierBlind:      "blind: coverage of analysis is too low",
	audit.TierMitigation: "mitigation: more often than the policy allows within its window",
}

// advice says what to try, by what the verdicts suggested most.
func advice(b *audit.Breach) string {
	if b.Tier == audit.TierBlind {
		return "Look at `evenhand jobs list` and the failed analyses; mend what keeps detectors from looking."
	}
	var first string
	switch b.Mitigation {
	case audit.MitigationRephrase:
		first = "Have responses rephrased without the findings: change the system prompt or the template behind the rules above, then compare the rate."
	case audit.MitigationReplace:
		first = "Replace the terms by the wording that `evenhand rules explain` names for the rules above, in the template or the system prompt."
	case audit.MitigationRephrasePrompt:
		first = "Rephrase the prompt or the system prompt so that groups are described alike, then compare the rate."
	case "BLOCK_RESPONSE":
		first = "Hold responses with these findings back until the cause is mended."
	case "HUMAN_APPROVAL":
		first = "Ask for a person's approval before such responses are used."
	case "REDACT_PII":
		first = "Redact personal data before responses leave the application."
	default:
		first = "Have a person review the examples, then decide."
	}
	if b.Tier == audit.TierPolicy {
		return first + " Look first at other answers of the same application and model: they may hold findings of the kind that nobody has reviewed yet."
	}
	return first + " Check first whether one application, model or prompt version is behind most of them, and whether the findings are right: dismissed ones leave the rate."
}

// SQL of what alarms count: of analysed interactions those that did not come late, and of these what no person dismissed.
const (
	looked = "analysis_status IN ('done', 'partial')"
	onTime = "broker_ts <= event_ts + INTERVAL 48 HOUR"
	held   = "review != 'dismissed'"
)

// query finds the interactions that a breach counts.
func query(b *audit.Breach) string {
	where := []string{window(b)}
	if b.Tier == audit.TierPolicy && len(b.Events) > 0 { // its window is when they were found
		ids := make([]string, len(b.Events))
		for i, e := range b.Events {
			ids[i] = "'" + e.String() + "'"
		}
		where[0] = "event_id IN (" + strings.Join(ids, ", ") + ")"
	}
	where = append(where, place(b)...)
	if b.Tier == audit.TierRate || b.Tier == audit.TierMitigation {
		where = append(where, looked, onTime)
	}
	return "SELECT event_id, event_ts, app, model, kinds FROM audit_current FINAL WHERE " + strings.Join(append(where, counted(b)...), " AND ") + " ORDER BY event_ts"
}

// tally counts them and what they are a share of.
func tally(b *audit.Breach) string {
	const from = " FROM audit_current FINAL WHERE "
	where := append([]string{window(b)}, place(b)...)
	is := strings.Join(counted(b), " AND ")
	switch b.Tier {
	case audit.TierPolicy:
		return ""
	case audit.TierBlind:
		return "SELECT countIf(" + is + ") AS k, countIf(analysis_status != 'skipped') AS n" + from + strings.Join(where, " AND ")
	}
	return "SELECT countIf(" + onTime + " AND " + is + ") AS k, countIf(" + onTime + ") AS n, countIf(NOT (" + onTime + ")) AS late" + from + strings.Join(append(where, looked), " AND ")
}

func window(b *audit.Breach) string {
	const t = "2006-01-02 15:04:05"
	return fmt.Sprintf("event_ts >= '%s' AND event_ts < '%s'", b.From.UTC().Format(t), b.To.UTC().Format(t))
}

// place is whose interactions they are, where. Values come from settings and the taxonomy; one that would need
// quoting in a shell or in SQL is left out, here and in counted.
func place(b *audit.Breach) (where []string) {
	for _, c := range []struct{ column, value string }{{"tenant_id", b.Tenant}, {"domain", string(b.Domain)}} {
		if plain(c.value) {
			where = append(where, c.column+" = '"+c.value+"'")
		}
	}
	return where
}

// counted tells which of them a breach counts.
func counted(b *audit.Breach) []string {
	kind := "bias_detected"
	if plain(b.Kind) {
		kind = "has(kinds, '" + b.Kind + "')"
	}
	switch {
	case b.Tier == audit.TierBlind: // what has no response is not received
		return []string{"analysis_status NOT IN ('done', 'partial', 'skipped')"}
	case b.Tier == audit.TierPolicy && b.Kind == "":
		return nil
	case b.Tier == audit.TierPolicy:
		return []string{kind}
	case b.Tier == audit.TierMitigation:
		return []string{kind, "mitigation != ''", held}
	}
	return []string{kind, held}
}

// plain tells whether a value means itself in a shell, in SQL and in Markdown.
func plain(s string) bool {
	for _, c := range s {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("_.-:", c)) {
			return false
		}
	}
	return s != ""
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// between is a window; one that ends in the minute of its beginning is that minute.
func between(from, to time.Time) string {
	if a, b := stamp(from), stamp(to); a != b {
		return a + " – " + b
	}
	return stamp(from)
}

// percent shows a share with three digits at most, so that rare things are not 0.
func percent(share float64) string {
	p := 100 * share
	switch {
	case p == 0:
		return "0 %"
	case p < 0.1:
		return strconv.FormatFloat(p, 'g', 2, 64) + " %"
	case p < 10:
		return strconv.FormatFloat(p, 'f', 2, 64) + " %"
	}
	return strconv.FormatFloat(p, 'f', 1, 64) + " %"
}

func chance(p float64) string {
	if p == 0 {
		return "below 1e-300"
	}
	return strconv.FormatFloat(p, 'g', 2, 64)
}

// count writes a number with its thousands apart.
func count(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// code shows a value as it is, whatever it holds: Markdown in it means nothing.
func code(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '`' || r == '|' || r < ' ' || r == 0x7f {
			return '·'
		}
		return r
	}, s)
	if s == "" {
		return "–"
	}
	return "`" + s + "`"
}

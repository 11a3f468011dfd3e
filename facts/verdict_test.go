package facts

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/rollup"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// mustSay adds a verdict.
func (f *fixture) mustSay(by string, id audit.ID, b Bias) *store.Item {
	f.Helper()
	it, err := f.w.UpdateBias(f.Context(), who(by), id, b)
	if err != nil {
		f.Fatal(err)
	}
	return it
}

func TestOutsideVerdictsStandBesideOurs(t *testing.T) {
	f := newFixture(t)
	ids := f.events(3)
	biased, clean := ids[0], ids[1]
	it := f.mustSay("vendor", clean, Bias{
		Types: Of([]string{"representation", "charter.age", "representation"}), Scores: Of([]audit.NamedScore{{Name: "sentiment_divergence", Value: 300_000}, {Name: "representation_score", Value: 0}}),
		Confidence: Of(audit.Score(864_999)), Mitigation: Of(json.RawMessage(`{"type": "REPHRASE_PROMPT", "details": "Say it otherwise"}`)), Report: Of(json.RawMessage(`{"b":1,"a":{"z":[1.5]}}`)),
	})
	if !it.BiasDetected || strings.Join(it.BiasTypes, " ") != "charter.age representation" || it.Confidence != 864_999 || it.MaxSeverity != 0 || !it.Effective() {
		t.Errorf("shown %+v", it)
	}
	// The same again is another fact; another caller stands beside it; ours is untouched.
	f.mustSay("vendor", clean, Bias{Confidence: Of(audit.Score(900_000))})
	f.mustSay("other", clean, Bias{Detected: Of(false), Scores: Of([]audit.NamedScore{{Name: "sentiment_divergence", Value: 700_000}}), Report: Of(json.RawMessage(`{}`)), Mitigation: Null[json.RawMessage]()})
	it = f.mustSay("other", clean, Bias{Detected: Of(false)})
	if !it.BiasDetected || it.Confidence != 900_000 {
		t.Errorf("merged %+v", it)
	}
	const view = `SELECT bias_detected, arrayStringConcat(bias_type, ' '), bias_score, bias_confidence_score, mitigation_action, JSONExtractRaw(assumeNotNull(bias_report_summary), 'outside'), JSONExtractString(assumeNotNull(bias_report_summary), 'status'), effective_bias
		FROM {{db}}.llm_interaction_audit WHERE id = '`
	if got, want := f.text(view+clean.String()+"'"), "true\tcharter.age representation\t{\"representation_score\":0,\"sentiment_divergence\":0.7}\t0.9\t{\"details\":\"Say it otherwise\",\"type\":\"REPHRASE_PROMPT\"}\t"+
		`{"other":{},"vendor":{"a":{"z":[1.5]},"b":1}}`+"\tdone\ttrue"; got != want {
		t.Errorf("view\n%s\nwant\n%s", got, want)
	}
	// null takes back.
	f.mustSay("vendor", clean, Bias{Types: Null[[]string](), Scores: Null[[]audit.NamedScore](), Confidence: Null[audit.Score](), Mitigation: Null[json.RawMessage](), Report: Null[json.RawMessage]()})
	if got, want := f.text(view+clean.String()+"'"), "false\t\t{\"sentiment_divergence\":0.7}\t0\t\\N\t{\"other\":{}}\tdone\tfalse"; got != want {
		t.Errorf("view after null\n%s\nwant\n%s", got, want)
	}
	// What our own analysis found stays, whatever others say; said types count though detected is denied.
	it = f.mustSay("vendor", biased, Bias{Detected: Of(false), Types: Of([]string{"representation"}), Confidence: Of(audit.One), Mitigation: Of(json.RawMessage(`{"type":"BLOCK_RESPONSE"}`))})
	if !it.BiasDetected || !it.Flagged || strings.Join(it.BiasTypes, " ") != "charter.sex representation" || it.Confidence != 700_000 || it.Mitigation != audit.MitigationBlock || it.Action != audit.NoAction {
		t.Errorf("beside ours %+v", it)
	}
	if got := f.text("SELECT analyzer, analyzer_version, arrayStringConcat(said, ' '), status, bias_detected, rule_set FROM {{db}}.verdicts FINAL WHERE event_id = '" + biased.String() + "' ORDER BY analyzer"); got !=
		"external:vendor\tvendor\tdetected types confidence mitigation\tdone\t0\t\nhot\t\t\tdone\t1\tr1" {
		t.Errorf("rows\n%s", got)
	}
	if n := f.count("SELECT uniqExact(result_id) FROM {{db}}.verdicts FINAL WHERE startsWith(analyzer, 'external:')"); n != 6 {
		t.Errorf("%d facts of 6 calls", n)
	}
	if n := len(f.paper.events); n != 6 || f.tally.of("verdict stored") != 6 {
		t.Errorf("%d messages", n)
	}
	last := f.paper.events[len(f.paper.events)-1]
	if last.AuditID != biased || !last.Detected || last.TraceID != it.TraceID || strings.Join(last.BiasTypes, " ") != "charter.sex representation" || last.Confidence != 700_000 || len(last.Scores) != 1 || last.ResultID.IsZero() {
		t.Errorf("message %+v", last)
	}
	for i := 1; i < 5; i++ {
		if a, b := f.paper.events[i-1], f.paper.events[i]; a.ResultID == b.ResultID {
			t.Errorf("two messages of one result: %+v", b)
		}
	}
	r, err := f.st.WithTenant("acme").Get(t.Context(), biased)
	if err != nil || len(r.Verdicts) != 2 {
		t.Errorf("%+v %v", r, err)
	}
	// Rollups count what the record shows.
	if _, err := rollup.New(f.conn, f.db).Rebuild(t.Context(), noon.Add(-24*time.Hour), noon.Add(48*time.Hour), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if got := f.text("SELECT dim, value, sum(k) FROM {{db}}.rollup_daily FINAL WHERE dim IN ('bias', 'mitigation') GROUP BY dim, value ORDER BY dim, value"); got != "bias\tcharter.sex\t2\nbias\trepresentation\t1\nmitigation\tBLOCK_RESPONSE\t1\nmitigation\tHUMAN_REVIEW\t1" {
		t.Errorf("rollups\n%s", got)
	}
	f.checked()
}

func TestFaultsOfAVerdict(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	object := func(s string) Patch[json.RawMessage] { return Of(json.RawMessage(s)) }
	for _, tc := range []struct {
		name  string
		b     Bias
		wants []string
	}{
		{"nothing", Bias{}, []string{"input: says nothing; give biasDetected"}},
		{"an unknown key", Bias{Types: Of([]string{"charter.sxe"})}, []string{`biasType[0]: "charter.sxe" is not in the taxonomy; the nearest key is "charter.sex"`}},
		{"words for a key", Bias{Types: Of([]string{"charter.sex", "She was rude"})}, []string{"biasType[1]: is not a key of the taxonomy"}},
		{"too many", Bias{Types: Of(make([]string, 65))}, []string{"biasType: holds 65 keys; 64 at most"}},
		{"all at once", Bias{Scores: Of([]audit.NamedScore{{Name: "a", Value: -1}, {Name: "A b", Value: 1}, {Name: "c", Value: audit.One + 1}, {Name: "d"}, {Name: "d"}}), Confidence: Of(audit.One + 1), Mitigation: object("[]"), Report: object(`{"a":1,"a":2}`)},
			[]string{"biasScore.a: -0.000001 is not in 0..1", "biasScore: a name is not", "biasScore.c: 1.000001", "biasScore.d: stands twice", "biasConfidenceScore: 1.000001 is not", "mitigationAction: is not a JSON object", "biasReportSummary: a name stands twice"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := f.w.UpdateBias(t.Context(), who("vendor"), id, tc.b)
			says(t, err, tc.wants...)
			if err != nil && strings.Contains(err.Error(), "rude") {
				t.Error("the error repeats words of the caller")
			}
		})
	}
	if _, err := f.w.UpdateBias(t.Context(), &auth.Principal{Tenant: "beta", Subject: "vendor"}, id, Bias{Detected: Of(true)}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("another tenant's: %v", err)
	}
	if _, err := f.w.UpdateBias(t.Context(), nil, id, Bias{Detected: Of(true)}); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("nobody: %v", err)
	}
	if n := f.count("SELECT count() FROM {{db}}.verdicts WHERE analyzer != 'hot'") + f.count("SELECT count() FROM {{db}}.interaction_texts WHERE startsWith(kind, 'outside')"); n != 0 {
		t.Errorf("%d rows of refused calls", n)
	}
}

// A process that ends between the steps: the fact stands; the repair shows it, the job publishes it.
func TestWhatAKillLeaves(t *testing.T) {
	f := newFixture(t)
	ids := f.events(2)
	f.paper.down = true
	cut := f.writer(func(p *Parts) { p.Current = absent{} })
	it, err := cut.UpdateBias(t.Context(), who("vendor"), ids[1], Bias{Types: Of([]string{"representation"})})
	if err != nil || !it.BiasDetected || strings.Join(it.BiasTypes, " ") != "representation" {
		t.Fatalf("the fact is stored, so the call succeeds and says so: %+v %v", it, err)
	}
	it, err = cut.Review(t.Context(), who("ann"), ids[0], Review{HumanReviewed: true, Tag: Of(Tag{Decision: Dismissed})})
	if err != nil || !it.HumanReviewed || it.Review != Dismissed || it.Effective() {
		t.Fatalf("%+v %v", it, err)
	}
	if f.tally.of("verdict unshown") != 1 || f.tally.of("verdict unpublished") != 1 || f.tally.of("review unshown") != 1 || f.tally.of("review unpublished") != 1 {
		t.Errorf("counted %v", f.tally.n)
	}
	if n := f.unshown(); n != 2 {
		t.Errorf("%d rows behind, want 2", n)
	}
	if rep, err := f.st.Check(t.Context()); err != nil || !rep.OK() {
		t.Errorf("facts of just now wait for the repair: %+v %v", rep.Faults, err)
	}
	keys := []store.Key{}
	for _, id := range ids {
		it, err := f.st.WithTenant("acme").Find(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, it.Key())
	}
	stale, err := f.st.StaleAmong(t.Context(), keys)
	if err != nil || len(stale) != 2 {
		t.Errorf("the repair finds %v %v", stale, err)
	}
	if err := f.mend.Rewrite(t.Context(), stale, false); err != nil {
		t.Fatal(err)
	}
	f.checked()
	// What retry's job publishes again.
	w := store.Written{From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour)}
	events, err := f.st.Retried(t.Context(), w)
	if err != nil || len(events) != 2 || events[0].AuditID != ids[1] || events[1].AuditID != ids[1] || !events[1].Time.After(events[0].Time) || !events[1].Detected || !events[0].Detected {
		t.Errorf("both results of the interaction, merged: %+v %v", events, err)
	}
	opinions, err := f.st.Opinions(t.Context(), w)
	if err != nil || len(opinions) != 1 || opinions[0].Decision != Dismissed || len(opinions[0].Findings) != 1 || opinions[0].Findings[0].Rule != "sex.a" {
		t.Errorf("%+v %v", opinions, err)
	}
}

// lost makes a write and says that it is not known whether it was made.
type lost struct {
	Rows
	left int
}

func (l *lost) OutsideVerdict(ctx context.Context, r audit.Record, said []string, texts []clickhouse.FactText) error {
	if err := l.Rows.OutsideVerdict(ctx, r, said, texts); err != nil {
		return err
	}
	if l.left--; l.left >= 0 {
		return errDown
	}
	return nil
}

func TestAWriteOfUnknownOutcomeIsOneFact(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	w := f.writer(func(p *Parts) { p.Rows = &lost{f.sink, 2} })
	if _, err := w.UpdateBias(t.Context(), who("vendor"), id, Bias{Report: Of(json.RawMessage(`{"a":1}`))}); err != nil {
		t.Fatal(err)
	}
	if v, x := f.count("SELECT count() FROM {{db}}.verdicts FINAL WHERE analyzer != 'hot'"), f.count("SELECT count() FROM {{db}}.interaction_texts FINAL WHERE kind = 'outside_report'"); v != 1 || x != 1 {
		t.Errorf("%d facts, %d texts", v, x)
	}
	w = f.writer(func(p *Parts) { p.Rows = &lost{f.sink, 9} })
	if _, err := w.UpdateBias(t.Context(), who("vendor"), id, Bias{Detected: Of(true)}); audit.KindOf(err) != audit.KindUnavailable || f.tally.of("verdict failed") != 1 {
		t.Errorf("%v", err)
	}
	if _, err := f.mend.Since(t.Context(), time.Time{}, func(int, int) {}); err != nil { // it may have been stored
		t.Fatal(err)
	}
}

// Once the texts are at their limit none is taken that would come back after the drop; the rest is.
func TestTextsAtTheirLimit(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	f.mustSay("vendor", id, Bias{Detected: Of(true), Report: Of(json.RawMessage(`{"a":1}`))})
	w := f.writer(func(p *Parts) {
		p.TextsGo = func(context.Context, string, time.Time) (time.Time, error) { return time.Now().Add(-time.Second), nil }
	})
	f.exec("ALTER TABLE {{db}}.interaction_texts DROP PARTITION ('std', '" + noon.Format(time.DateOnly) + "')")
	_, err := w.UpdateBias(t.Context(), who("vendor"), id, Bias{Report: Of(json.RawMessage(`{}`)), Mitigation: Of(json.RawMessage(`{}`))})
	says(t, err, "mitigationAction: the texts of this interaction have reached", "biasReportSummary: the texts")
	_, err = w.Review(t.Context(), who("ann"), id, Review{HumanReviewed: true, Notes: Of("too late")})
	says(t, err, "reviewNotes: the texts")
	_, err = w.Feedback(t.Context(), who("ann"), id, Feedback{Note: "too late"})
	says(t, err, "note: the texts")
	_, err = w.Reveal(t.Context(), who("ann"), id, audit.ID{}, "a case of last year")
	says(t, err, "reason: the texts")
	if _, err := w.UpdateBias(t.Context(), who("vendor"), id, Bias{Confidence: Of(audit.One)}); err != nil {
		t.Error(err)
	}
	if _, err := w.Review(t.Context(), who("ann"), id, Review{HumanReviewed: true, Tag: Of(Tag{Decision: Confirmed})}); err != nil {
		t.Error(err)
	}
	if n := f.count("SELECT count() FROM {{db}}.interaction_texts"); n != 0 {
		t.Errorf("%d texts came back", n)
	}
	if got := f.text("SELECT text_state, human_reviewed, review_notes, mitigation_action, position(assumeNotNull(bias_report_summary), 'outside\":') FROM {{db}}.llm_interaction_audit"); got != "dropped\ttrue\t\\N\t{\"type\":\"HUMAN_REVIEW\",\"details\":\"A person should look at the response\"}\t0" {
		t.Errorf("view %s", got)
	}
}

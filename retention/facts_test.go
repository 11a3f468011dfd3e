package retention_test

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
)

// What people and outside analyzers wrote goes with the texts of its interaction, or is kept with them by a
// hold; the facts without their words go with the rows.
func TestWordsOfLaterFactsGoWithTheTexts(t *testing.T) {
	w := newWorld(t)
	w.days(0, 1, 1, 2, "acme")
	held := w.event("acme", 0, 0)
	for i := range 2 {
		r := w.event("acme", 0, i)
		in := r.Interaction
		f := func(kind string) chsink.Fact {
			at := in.Time.Add(time.Hour)
			return chsink.Fact{ID: audit.NewID(at), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at, Texts: []chsink.FactText{{Kind: kind, Text: "canary-acme-0-" + kind + "-0"}}}
		}
		helped := true
		v := &audit.Verdict{ResultID: audit.NewID(in.Time), Analyzer: audit.ExternalAnalyzer("vendor"), Source: "vendor", Status: audit.Done, Action: audit.NoAction, Time: in.Time.Add(time.Hour)}
		for _, err := range []error{
			w.sink.Review(t.Context(), f(chsink.KindReviewNote), "confirmed", nil),
			w.sink.Feedback(t.Context(), f(chsink.KindFeedbackNote), &helped),
			w.sink.Reveal(t.Context(), f(chsink.KindRevealReason), true),
			w.sink.OutsideVerdict(t.Context(), audit.Record{Origin: r.Origin, Interaction: in, Verdict: v}, []string{"report", "mitigation"},
				[]chsink.FactText{{Kind: chsink.KindReport, Text: `{"canary":1}`}, {Kind: chsink.KindMitigation, Text: `{"canary":2}`}}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	kinds := func(table string) string {
		return strings.ReplaceAll(w.text("SELECT kind, count() FROM {db}."+table+" FINAL WHERE kind LIKE 'outside%' OR kind IN ('review_note', 'reveal_reason', 'feedback_note') GROUP BY kind ORDER BY kind"), "\n", " ")
	}
	if got := kinds("interaction_texts"); got != "kind\tcount() feedback_note\t2 outside_mitigation\t2 outside_report\t2 reveal_reason\t2 review_note\t2 " {
		t.Fatalf("written %s", got)
	}
	r := w.retention(short())
	if _, _, err := r.Place(t.Context(), retention.Hold{Tenant: "acme", Events: []audit.ID{held.Interaction.ID}, Reason: "case-1", By: "test"}); err != nil {
		t.Fatal(err)
	}
	w.on(31)
	if out := w.run(r); out.Partitions != 2 {
		t.Errorf("%+v", out)
	}
	if n := w.count("SELECT count() FROM {db}.interaction_texts"); n != 0 {
		t.Errorf("%d texts are left", n)
	}
	if got := kinds("texts_held"); got != "kind\tcount() feedback_note\t1 outside_mitigation\t1 outside_report\t1 reveal_reason\t1 review_note\t1 " {
		t.Errorf("held %s", got)
	}
	for _, table := range []string{"reviews", "feedback", "reveals"} {
		if n := w.count("SELECT count() FROM {db}." + table + " FINAL"); n != 2 {
			t.Errorf("%s: %d rows after the texts went, want 2", table, n)
		}
	}
}

// Erasing a person leaves why members of staff looked, and the log of that reads as docs/review.md says.
func TestErasingLeavesTheAccountOfReveals(t *testing.T) {
	w := newWorld(t)
	mine := of("person-17", w.event("acme", 0, 0))
	w.write([]audit.Record{mine}, nil)
	in := mine.Interaction
	for kind, write := range map[string]func(context.Context, chsink.Fact) error{
		chsink.KindRevealReason: func(ctx context.Context, f chsink.Fact) error { return w.sink.Reveal(ctx, f, true) },
		chsink.KindFeedbackNote: func(ctx context.Context, f chsink.Fact) error { return w.sink.Feedback(ctx, f, nil) },
	} {
		at := in.Time.Add(time.Hour)
		f := chsink.Fact{ID: audit.NewID(at), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at, Texts: []chsink.FactText{{Kind: kind, Text: "ticket 17: asked by the works council"}}}
		if err := write(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	w.on(1)
	w.erase("acme", "person-17")
	if got := w.text("SELECT kind FROM {db}.interaction_texts FINAL"); got != "kind\nreveal_reason\n" {
		t.Errorf("left: %q", got)
	}
	if rec, err := w.store.WithTenant("acme").Get(t.Context(), in.ID); err != nil || rec.TextState != "dropped" {
		t.Errorf("%+v, %v", rec, err)
	}
	if x := w.check().Seals; x.TextsErased != 1 {
		t.Errorf("%+v", x)
	}
	page, err := os.ReadFile("../docs/review.md")
	if err != nil {
		t.Fatal(err)
	}
	statements := regexp.MustCompile(`(?s)evenhand sql "(.*?)"`).FindAllStringSubmatch(string(page), -1)
	if len(statements) != 2 {
		t.Fatalf("%d statements", len(statements))
	}
	for i, want := range []string{"ann\t1\t1\n", "\tacme\tann\t1\t" + in.ID.String() + "\tticket 17: asked by the works council\n"} {
		if got := w.text(statements[i][1]); !strings.HasSuffix(got, want) {
			t.Errorf("%s\ngives %q", statements[i][1], got)
		}
	}
}

// TextsGo says until when a later fact may have words: the limit by which the partition is dropped.
func TestTextsGo(t *testing.T) {
	w := newWorld(t)
	cfg := short()
	cfg.Tenants = map[string]retention.Override{"early": {TextDays: 10}}
	for tenant, days := range map[string]int{"acme": 31, "early": 11} {
		at, err := w.classes.TextsGo(t.Context(), cfg, tenant, day0)
		if err != nil || !at.Equal(day0.AddDate(0, 0, days)) {
			t.Errorf("%s: %v %v, want %d days", tenant, at, err, days)
		}
	}
}

package retention_test

import (
	"context"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
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

// What retention and an erasure take of later facts their seals explain, and what somebody else took they do not.
func TestSealsOfFactsThatWentAway(t *testing.T) {
	const person = "person-17"
	w := newWorld(t)
	w.days(0, 1, 1, 2, "acme")
	mine := of(person, w.event("acme", 0, 2))
	w.write([]audit.Record{mine}, nil)
	for _, r := range []audit.Record{w.event("acme", 0, 0), w.event("acme", 0, 1), mine} {
		in, at := r.Interaction, r.Interaction.Time.Add(time.Hour)
		f := chsink.Fact{ID: audit.NewID(at), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at, Texts: []chsink.FactText{{Kind: chsink.KindReviewNote, Text: "as agreed"}}}
		if err := w.sink.Review(t.Context(), f, "confirmed", nil); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want store.FactSealReport, deleted uint64) {
		t.Helper()
		rep, err := w.store.CheckWith(t.Context(), store.CheckOptions{AtRest: true})
		if err != nil {
			t.Fatal(err)
		}
		got, gone := *rep.FactSeals, uint64(0)
		for _, f := range rep.Faults {
			if strings.HasPrefix(string(f.Code), "fact_") {
				gone += f.Count
			}
		}
		got.Since, got.Rows, got.Writers = nil, 0, 0
		if gone != deleted || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %d faults; want %+v, %d", when, got, gone, want, deleted)
		}
	}
	expect("at first", store.FactSealReport{Facts: 3, Texts: 3}, 0)
	r := w.retention(short())
	w.on(4)
	if _, _, err := r.Erase(t.Context(), retention.Erasure{Tenant: "acme", Reason: "request-1", By: "ann"}, person, func(int, int) {}, func() {}); err != nil {
		t.Fatal(err)
	}
	expect("erased", store.FactSealReport{Facts: 3, Texts: 2, TextsErased: 1}, 0)
	w.on(31)
	w.run(r)
	expect("texts dropped", store.FactSealReport{Facts: 3, TextsDropped: 3}, 0)
	w.rollups()
	for _, day := range []int{61, 63} { // frozen, and a day later deleted
		w.on(firstMonthEnds + day)
		w.run(r)
	}
	expect("month deleted", store.FactSealReport{Purged: 3, TextsDropped: 3}, 0)
	w.exec("ALTER TABLE {db}.retention_runs DELETE WHERE object = 'reviews' SETTINGS mutations_sync = 1")
	expect("deleted by nobody", store.FactSealReport{TextsDropped: 3}, 3)
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

package facts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/store"
)

func TestReviews(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	shown := func() string {
		return f.text("SELECT human_reviewed, human_bias_tag, review_notes, effective_bias FROM {{db}}.llm_interaction_audit")
	}
	for _, step := range []struct {
		name, by string
		r        Review
		item     string // human_reviewed, review, effective
		view     string
	}{
		{"dismissed", "ann", Review{HumanReviewed: true, Tag: Of(Tag{Dismissed, []string{"terms.gender", "terms.gender"}}), Notes: Of("a quotation")}, "true dismissed false",
			`true	{"decision":"dismissed","tags":["terms.gender"]}	a quotation	false`},
		{"notes alone keep the decision", "ann", Review{HumanReviewed: true, Notes: Of("a quotation of her own")}, "true dismissed false",
			`true	{"decision":"dismissed","tags":["terms.gender"]}	a quotation of her own	false`},
		{"another one's is newer", "bob", Review{HumanReviewed: true, Tag: Of(Tag{Confirmed, nil})}, "true confirmed true", `true	{"decision":"confirmed","tags":[]}	\N	true`},
		{"a note of a third decides nothing", "cid", Review{HumanReviewed: true, Notes: Of("looked at, no view")}, "true confirmed true", `true	{"decision":"confirmed","tags":[]}	\N	true`},
		{"a third's decision", "cid", Review{HumanReviewed: true, Tag: Of(Tag{Decision: Dismissed}), Notes: Null[string]()}, "true dismissed false", `true	{"decision":"dismissed","tags":[]}	\N	false`},
		{"unsure after all: the newest that is left holds", "cid", Review{HumanReviewed: true, Tag: Of(Tag{Decision: Unsure})}, "true confirmed true", `true	{"decision":"confirmed","tags":[]}	\N	true`},
		{"taken back: the first shows again", "bob", Review{}, "true dismissed false", `true	{"decision":"dismissed","tags":["terms.gender"]}	a quotation of her own	false`},
		{"tags alone keep the decision", "ann", Review{HumanReviewed: true, Tag: Of(Tag{Tags: []string{"charter.sex"}})}, "true dismissed false",
			`true	{"decision":"dismissed","tags":["charter.sex"]}	a quotation of her own	false`},
		{"unsure", "ann", Review{HumanReviewed: true, Tag: Of(Tag{Unsure, []string{"charter.sex"}}), Notes: Null[string]()}, "true  true", `true	{"decision":"unsure","tags":["charter.sex"]}	\N	true`},
		{"of two who are unsure the newest shows", "ann", Review{}, "true  true", `true	{"decision":"unsure","tags":[]}	\N	true`},
		{"nothing is left", "cid", Review{}, "false  true", "false	\\N	\\N	true"},
		{"again, from nothing", "ann", Review{HumanReviewed: true}, "true  true", `true	{"decision":"unsure","tags":[]}	\N	true`},
	} {
		it, err := f.w.Review(t.Context(), who(step.by), id, step.r)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := fmt.Sprint(it.HumanReviewed, " ", it.Review, " ", it.Effective()); got != step.item {
			t.Errorf("%s: %s, want %s", step.name, got, step.item)
		}
		if got := shown(); got != step.view {
			t.Errorf("%s: view\n%s\nwant\n%s", step.name, got, step.view)
		}
	}
	f.checked()
	if n := f.count("SELECT count() FROM {{db}}.reviews FINAL"); n != 12 {
		t.Errorf("%d facts of 12 calls", n)
	}
	var said []string
	for _, o := range f.paper.opinions {
		said = append(said, o.Decision)
	}
	if got := strings.Join(said, " "); got != "dismissed dismissed confirmed unsure dismissed unsure withdrawn dismissed unsure withdrawn withdrawn unsure" {
		t.Errorf("messages %s", got)
	}
	first, err := json.Marshal(f.paper.opinions[0])
	if err != nil || strings.Contains(string(first), "quotation") || strings.Contains(string(first), "ann") {
		t.Errorf("a message holds words or a name: %s", first)
	}
	if o := f.paper.opinions[0]; o.Kind != audit.OpinionReview || o.RuleSet != "r1" || o.Domain != audit.HR || len(o.Tags) != 1 || len(o.Findings) != 1 || o.Findings[0] != (audit.OpinionFinding{Kind: "charter.sex", Rule: "sex.a", RuleVersion: "7", Side: audit.Output}) {
		t.Errorf("%+v", o)
	}
}

// A button that is pressed twice stores one review; said again later, or after another person's, it counts anew.
func TestReviewsAreStoredOnce(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	for _, step := range []struct {
		by     string
		later  time.Duration
		r      Review
		stored int
	}{
		{"ann", 0, Review{HumanReviewed: true, Tag: Of(Tag{Dismissed, []string{"terms.gender"}}), Notes: Of("a quotation")}, 1},
		{"ann", time.Second, Review{HumanReviewed: true, Tag: Of(Tag{Dismissed, []string{"terms.gender"}}), Notes: Of("a quotation")}, 1},
		{"ann", time.Second, Review{HumanReviewed: true, Tag: Of(Tag{Dismissed, []string{"terms.gender"}}), Notes: Of("a quotation of hers")}, 2},
		{"bob", time.Second, Review{}, 2}, // who said nothing has nothing to take back
		{"bob", time.Second, Review{HumanReviewed: true, Tag: Of(Tag{Decision: Confirmed})}, 3},
		{"ann", time.Second, Review{HumanReviewed: true, Tag: Of(Tag{Dismissed, []string{"terms.gender"}}), Notes: Of("a quotation of hers")}, 4},
		{"ann", time.Second, Review{}, 5},
		{"ann", time.Second, Review{}, 5},
		{"ann", time.Minute, Review{}, 6},
	} {
		at := f.w.Now().Add(step.later)
		f.w.Now = func() time.Time { return at }
		if _, err := f.w.Review(t.Context(), who(step.by), id, step.r); err != nil {
			t.Fatal(err)
		}
		if n := f.count("SELECT count() FROM {{db}}.reviews FINAL"); n != uint64(step.stored) || len(f.paper.opinions) != step.stored {
			t.Errorf("%d facts and %d messages, want %d", n, len(f.paper.opinions), step.stored)
		}
	}
	f.checked()
}

// The query of docs/review.md gives Cohen's kappa of the newest decisions, by hand: ann and bob agree on 3 of 4 beside
// chance of a half, which is (3/4 - 1/2) / (1 - 1/2); bob and cid on all of what nobody dismissed.
func TestAgreement(t *testing.T) {
	f := newFixture(t)
	ids := f.events(6)
	for _, said := range []struct {
		by string
		d  []string // of each event, "" for none; one after the other where there are two
	}{
		{"ann", []string{"dismissed confirmed", "confirmed", "dismissed", "dismissed", "unsure", "confirmed"}},
		{"bob", []string{"confirmed", "confirmed", "dismissed", "unsure confirmed", "confirmed", "confirmed withdrawn"}},
		{"cid", []string{"confirmed", "confirmed", "", "", "", "unsure"}},
	} {
		for i, all := range said.d {
			for _, d := range strings.Fields(all) {
				r := Review{HumanReviewed: d != Withdrawn}
				if r.HumanReviewed {
					r.Tag = Of(Tag{Decision: d})
				}
				if _, err := f.w.Review(t.Context(), who(said.by), ids[i], r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	page, err := os.ReadFile("../docs/review.md")
	if err != nil {
		t.Fatal(err)
	}
	_, query, found := strings.Cut(string(page), "```sql\n")
	query, _, ended := strings.Cut(query, "```")
	if !found || !ended {
		t.Fatal("docs/review.md has no query")
	}
	query = strings.Replace(query, "FROM reviews", "FROM {{db}}.reviews", 1)
	const want = "acme\tann\tbob\t4\t0.75\t0.5\t0.75\t0.5\t0.5\nacme\tann\tcid\t2\t1\t1\t1\t1\t\\N\nacme\tbob\tcid\t2\t1\t1\t1\t1\t\\N"
	if got := f.text(query); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// counting is a read model that counts how often it follows.
type counting struct {
	*repair.Repairer
	n atomic.Int32
}

func (c *counting) Follow(ctx context.Context, keys ...store.Key) error {
	c.n.Add(1)
	return c.Repairer.Follow(ctx, keys...)
}

// Many reviews are stored together, of two about one interaction the later as the newer; what costs most, the read model and the messages, is done once.
func TestManyReviewsAtOnce(t *testing.T) {
	f := newFixture(t)
	ids := f.events(6)
	model := &counting{Repairer: f.mend}
	f.w = f.writer(func(p *Parts) { p.Current = model })
	refused := errors.New("not this one")
	say := func(who string, of []audit.ID, d ...string) ([]*store.Item, []error) {
		return f.w.Reviews(t.Context(), &auth.Principal{Tenant: "acme", Subject: who}, len(d), func(i int) (audit.ID, Review, error) {
			if d[i] == "" {
				return audit.ID{}, Review{}, refused
			}
			return of[i], Review{HumanReviewed: d[i] != Withdrawn, Tag: Patch[Tag]{Given: d[i] != Withdrawn, Value: &Tag{Decision: d[i]}}}, nil
		})
	}
	shown := func(items []*store.Item, errs []error) string {
		var out []string
		for i, it := range items {
			switch {
			case it != nil:
				out = append(out, it.EventID.String()[:4]+" "+it.Review)
			case errors.Is(errs[i], store.ErrNotFound):
				out = append(out, "unknown")
			default:
				out = append(out, fmt.Sprint(errs[i]))
			}
		}
		return strings.ReplaceAll(strings.Join(out, ", "), ids[0].String()[:4], "0")
	}
	four := func(i int) string { return ids[i].String()[:4] }
	got := shown(say("ann", []audit.ID{ids[0], ids[1], {}, audit.DeriveID("acme", "none"), ids[0], ids[2]}, Dismissed, Confirmed, "", Dismissed, Confirmed, Unsure))
	if want := fmt.Sprintf("0 confirmed, %s confirmed, not this one, unknown, 0 confirmed, %s ", four(1), four(2)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if n := f.count("SELECT count() FROM {{db}}.reviews FINAL"); n != 4 || len(f.paper.opinions) != 4 || model.n.Load() != 1 || f.tally.of("review stored") != 4 || f.tally.of("review refused") != 1 {
		t.Errorf("%d facts, %d messages, %d rewrites; %v", n, len(f.paper.opinions), model.n.Load(), f.tally.n)
	}
	if items, errs := say("ann", ids, "", ""); items[0] != nil || errs[1] != refused || model.n.Load() != 1 {
		t.Errorf("nothing to store: %v %v, %d rewrites", items, errs, model.n.Load())
	}
	f.checked()

	var both errgroup.Group // a button that is pressed twice
	for range 2 {
		both.Go(func() error {
			_, errs := say("cid", ids, Confirmed, Dismissed, Unsure, Confirmed)
			return errors.Join(errs...)
		})
	}
	if err := both.Wait(); err != nil || f.count("SELECT count() FROM {{db}}.reviews FINAL WHERE reviewer = 'cid'") != 4 {
		t.Errorf("pressed twice: %v", err)
	}
	f.checked()

	f.w = f.writer(func(p *Parts) { p.Current = absent{} })
	f.paper.down = true
	stored := f.tally.of("review stored")
	if got, want := shown(say("bob", ids, Dismissed, Unsure, Dismissed)), fmt.Sprintf("0 dismissed, %s dismissed, %s dismissed", four(1), four(2)); got != want {
		t.Errorf("behind the facts: %s, want %s", got, want)
	}
	if f.tally.of("review stored") != stored+3 || f.tally.of("review unshown") != 3 || f.tally.of("review unpublished") != 3 {
		t.Errorf("%v", f.tally.n)
	}
}

func TestFaultsOfAReview(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	for _, tc := range []struct {
		name  string
		r     Review
		wants []string
	}{
		{"decision and tags", Review{HumanReviewed: true, Tag: Of(Tag{"maybe", []string{"charter.sexx", "not a key"}})}, []string{"humanBiasTag.decision: is not confirmed", `humanBiasTag.tags[0]: "charter.sexx"`, `nearest key is "charter.sex"`, "humanBiasTag.tags[1]: is not a key"}},
		{"withdrawn is not said", Review{HumanReviewed: true, Tag: Of(Tag{Decision: Withdrawn})}, []string{"humanBiasTag.decision"}},
		{"taken back with words", Review{Tag: Of(Tag{Decision: Confirmed}), Notes: Of("x")}, []string{"humanBiasTag: humanReviewed is false", "reviewNotes: humanReviewed is false"}},
		{"long notes", Review{HumanReviewed: true, Notes: Of(strings.Repeat("é", maxNotes+1))}, []string{"reviewNotes: has 10001 characters; 10000 at most"}},
		{"no UTF-8", Review{HumanReviewed: true, Notes: Of("\xff")}, []string{"reviewNotes: is not UTF-8"}},
	} {
		_, err := f.w.Review(t.Context(), who("ann"), id, tc.r)
		says(t, err, tc.wants...)
	}
	if n := f.count("SELECT count() FROM {{db}}.reviews"); n != 0 {
		t.Errorf("%d rows of refused calls", n)
	}
	if f.tally.of("review refused") != 5 {
		t.Errorf("%v", f.tally.n)
	}
}

func TestFeedback(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	yes := true
	a, err := f.w.Feedback(t.Context(), who("ann"), id, Feedback{Helped: &yes})
	if err != nil || a.By != "ann" || a.Helped == nil || !*a.Helped {
		t.Fatalf("%+v %v", a, err)
	}
	if again, err := f.w.Feedback(t.Context(), who("ann"), id, Feedback{Helped: &yes}); err != nil || again.ID != a.ID || again.By != "ann" || again.Helped == nil || !*again.Helped || !again.At.Equal(a.At) {
		t.Errorf("a button that is pressed twice: %+v %v", again, err)
	}
	if _, err := f.w.Feedback(t.Context(), who("ann"), id, Feedback{Note: "after all, I do not know"}); err != nil {
		t.Fatal(err)
	}
	_, err = f.w.Feedback(t.Context(), who("ann"), id, Feedback{})
	says(t, err, "input: says nothing; give helped or note")
	tenant := f.st.WithTenant("acme")
	it, err := tenant.Find(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	of, err := tenant.Feedback(t.Context(), []*store.Item{it})
	if err != nil {
		t.Fatal(err)
	}
	texts, err := tenant.Texts(t.Context(), []*store.Item{it})
	all, notes := of[it.Key()], texts[it.Key()].Notes
	if err != nil || len(all) != 2 || len(notes) != 1 || all[0].Helped != nil || notes[all[0].ID] != "after all, I do not know" || all[1].Helped == nil || !*all[1].Helped || !all[0].At.After(all[1].At) {
		t.Errorf("%+v %v", all, err)
	}
	if o := f.paper.opinions; len(o) != 2 || o[0].Kind != audit.OpinionFeedback || o[0].Helped == nil || !*o[0].Helped || o[1].Helped != nil || o[0].Decision != "" {
		t.Errorf("%+v", o)
	}
	f.checked()
}

// However many processes ask at once, no more are let through than the limit says.
func TestReveals(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	for _, reason := range []string{"short", "       7       ", strings.Repeat("x", 1001), strings.Repeat("\u200b", 9), "........", "case\u00ad\u200b \u2060 7", strings.Repeat("\u3164", 9), "\u3164\u115f\u1160 case 7"} {
		_, err := f.w.Reveal(t.Context(), who("ann"), id, audit.ID{}, reason)
		says(t, err, "reason: has ", "want 8 to 1000")
	}
	if n := f.count("SELECT count() FROM {{db}}.reveals"); n != 0 {
		t.Errorf("%d reveals without a reason", n)
	}
	var g errgroup.Group
	errs := make([]error, 8)
	for i := range errs {
		w := f.writer(nil) // as a process of its own
		g.Go(func() error {
			_, errs[i] = w.Reveal(t.Context(), who("ann"), id, audit.ID{}, "the complaint of May, case 12")
			return nil
		})
	}
	_ = g.Wait()
	granted := 0
	for _, err := range errs {
		if err == nil {
			granted++
		} else if audit.KindOf(err) != audit.KindOverloaded || !strings.Contains(err.Error(), "reveal.per_hour") {
			t.Error(err)
		}
	}
	if granted > 3 {
		t.Errorf("%d were let through, the limit is 3", granted)
	}
	for range 3 - granted { // those who were in each other's way
		if _, err := f.w.Reveal(t.Context(), who("ann"), id, audit.ID{}, "the complaint of May, case 12"); err != nil {
			t.Errorf("refused though the limit is not reached: %v", err)
		}
	}
	if _, err := f.w.Reveal(t.Context(), who("ann"), id, audit.ID{}, "once more, please"); audit.KindOf(err) != audit.KindOverloaded {
		t.Errorf("the fourth: %v", err)
	}
	if _, err := f.w.Reveal(t.Context(), who("bob"), id, audit.ID{}, "another person asks"); err != nil {
		t.Error(err)
	}
	if got := f.text("SELECT subject, countIf(granted = 1), countIf(granted = 0) FROM {{db}}.reveals FINAL GROUP BY subject ORDER BY subject"); got != fmt.Sprintf("ann\t3\t%d\nbob\t1\t0", 8-granted+1) {
		t.Errorf("recorded\n%s", got)
	}
	if n := f.count("SELECT count() FROM {{db}}.interaction_texts FINAL WHERE kind = 'reveal_reason'"); n != 4 {
		t.Errorf("%d reasons of 4 reveals", n)
	}
	later := f.writer(func(p *Parts) { p.Now = func() time.Time { return time.Now().Add(61 * time.Minute) } })
	if _, err := later.Reveal(t.Context(), who("ann"), id, audit.ID{}, "an hour has passed"); err != nil {
		t.Error(err)
	}
	f.checked()
}

func TestTaxonomy(t *testing.T) {
	f := newFixture(t)
	id := f.events(1)[0]
	_, err := f.w.PutTaxonomy(t.Context(), who("admin"), store.TaxonomyEntry{Key: "Brand Tone", Severity: 6, Description: strings.Repeat("x", 501)})
	says(t, err, "biasKey: want lower_snake_case", "severityLevel: 6 is not in 1..5", "description: has 501 characters")
	_, err = f.w.UpdateBias(t.Context(), who("vendor"), id, Bias{Types: Of([]string{"brand.tone"})})
	says(t, err, `"brand.tone" is not in the taxonomy`)
	other := f.writer(nil) // knows the vocabulary of before
	if _, err := other.words.unknown(t.Context(), []string{"charter.sex"}); err != nil {
		t.Fatal(err)
	}
	a, err := f.w.PutTaxonomy(t.Context(), who("admin"), store.TaxonomyEntry{Key: "brand.tone", Severity: 2, Description: "Not how we speak"})
	if err != nil || a.ID < 1<<30 || a.ID >= 1<<31 {
		t.Fatalf("%+v %v", a, err)
	}
	b, err := other.PutTaxonomy(t.Context(), who("admin"), store.TaxonomyEntry{Key: "brand.tone", Severity: 3})
	if err != nil || b.ID != a.ID || b.Description != "Not how we speak" {
		t.Errorf("%+v %v", b, err)
	}
	if _, err := other.UpdateBias(t.Context(), who("vendor"), id, Bias{Types: Of([]string{"brand.tone"})}); err != nil {
		t.Error(err)
	}
	was, err := f.w.words.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(was, func(e store.TaxonomyEntry) bool { return e.Key == "charter.sex" })
	c, err := f.w.PutTaxonomy(t.Context(), who("admin"), store.TaxonomyEntry{Key: "charter.sex", Severity: 5, Description: "Sex, as we see it"})
	if err != nil || c.ID != was[at].ID {
		t.Errorf("%+v %v", c, err)
	}
	migrated(f) // an upgrade
	now, err := f.w.words.List(t.Context())
	if err != nil || len(now) != len(was) || now[at] != *c {
		t.Errorf("after the migration: %d keys, were %d; %+v %v", len(now), len(was), now[at], err)
	}
	if n := f.count("SELECT count() FROM {{db}}.bias_taxonomy FINAL") - f.count("SELECT uniqExact(id) FROM {{db}}.bias_taxonomy FINAL"); n != 0 {
		t.Errorf("%d ids stand twice", n)
	}
}

// Ids of added keys do not depend on who adds them and in what order, unless two keys meet in one.
func TestIDsOfKeys(t *testing.T) {
	v := NewVocabulary(nil, nil)
	v.keys = map[string]store.VersionedEntry{}
	first := v.freeID("brand.tone")
	v.keys["other"] = store.VersionedEntry{TaxonomyEntry: store.TaxonomyEntry{ID: first}}
	if second := v.freeID("brand.tone"); second == first || second < 1<<30 || second >= 1<<31 {
		t.Errorf("%d %d", first, second)
	}
}

// Of an id that came with other content, or on another day, a review speaks of the content that it names.
func TestReviewsOfOneOfSeveralContents(t *testing.T) {
	f := newFixture(t)
	clean, biased, again := f.event("acme", 1), f.event("acme", 2), f.event("acme", 1)
	id := clean.Interaction.ID
	biased.Interaction.ID, biased.Verdict.ResultID = id, audit.HotResultID("acme", id, biased.Interaction.Digest)
	f.write(clean, biased)
	confirmed := Review{HumanReviewed: true, Tag: Of(Tag{Decision: Confirmed})}
	for _, tc := range []struct {
		of   audit.ID
		want string // of the error
	}{
		{audit.ID{}, "id: it came with several contents; say by resultId, as the record has it, which is meant"},
		{audit.DeriveID("other"), "resultId: no content of this interaction has it"},
	} {
		confirmed.Of = tc.of
		_, e1 := f.w.Review(t.Context(), who("ann"), id, confirmed)
		_, e2 := f.w.Reveal(t.Context(), who("ann"), id, tc.of, "the complaint of May, case 12")
		for _, err := range []error{e1, e2} {
			if audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v, want %q", err, tc.want)
			}
		}
	}
	for _, r := range []audit.Record{biased, clean} {
		confirmed.Of = r.Verdict.ResultID
		it, err := f.w.Review(t.Context(), who("ann"), id, confirmed)
		if err != nil || it.Digest != r.Interaction.Digest || it.ResultID() != r.Verdict.ResultID || it.BiasDetected != r.Verdict.Detected {
			t.Errorf("%+v %v", it, err)
		}
		if it, err = f.w.Reveal(t.Context(), who("ann"), id, confirmed.Of, "the complaint of May, case 12"); err != nil || it.Digest != r.Interaction.Digest {
			t.Errorf("%+v %v", it, err)
		}
	}
	if n := f.count("SELECT uniqExact(content_digest) FROM {{db}}.reviews FINAL"); n != 2 {
		t.Errorf("reviews of %d contents", n)
	}
	f.checked()

	// The same content on another day is no other one.
	late := f.event("acme", 3)
	again.Interaction.ID, again.Interaction.Digest, again.Interaction.Time = late.Interaction.ID, late.Interaction.Digest, noon.AddDate(0, 0, -1)
	again.Verdict.ResultID = late.Verdict.ResultID
	f.write(late)
	f.write(again)
	confirmed.Of = audit.ID{}
	if _, err := f.w.Review(t.Context(), who("ann"), late.Interaction.ID, confirmed); err != nil {
		t.Error(err)
	}
}

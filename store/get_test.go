package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

func TestGet(t *testing.T) {
	f := newFixture(t)
	f.keepUnmerged()
	e := sample("acme", 0)
	again := e // the same event at another place, later
	again.part, again.offset, again.broker = 1, 40, e.broker.Add(time.Minute)
	f.write(e, sample("acme", 1), sample("beta", 0))
	f.write(again)

	r, err := f.WithTenant("acme").Get(t.Context(), e.id)
	if err != nil {
		t.Fatal(err)
	}
	if r.Origin.Partition != 0 || r.Origin.Offset != e.offset || r.IDConflict {
		t.Errorf("the first delivery must win: %+v, conflict %v", r.Origin, r.IDConflict)
	}
	in := r.Interaction
	want := audit.Interaction{
		ID: e.id, Tenant: "acme", Time: e.at, TraceID: trace(e.id), Application: e.app, Domain: e.domain, Provider: e.provider, Model: e.model,
		UserID: e.user, UserEmail: "u@example.org", UserRole: "clerk", Prompt: e.prompt, Query: e.prompt, Response: e.response,
		PromptTokens: audit.Unknown, CostMicroUSD: 2500, SensitivityScore: e.sens, ContainedPII: -1, ContainedCustomerData: 1,
		Status: "success", PromptChars: uint32(len(e.prompt)), ResponseChars: uint32(len(e.response)), Digest: e.digest(),
	}
	if d := cmp.Diff(want, in); d != "" {
		t.Errorf("interaction (-want +got):\n%s", d)
	}
	if r.TextState != store.TextPresent || len(r.Verdicts) != 1 {
		t.Fatalf("text %s, %d verdicts", r.TextState, len(r.Verdicts))
	}
	v := r.Verdicts[0]
	for i := range e.findings {
		e.findings[i].RuleVersion = "2026.11.1"
	}
	if d := cmp.Diff(e.findings, v.Findings); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
	if got := r.Evidence(v.Findings[0]); got != "women are ba" { // code points 5 to 17, behind two é
		t.Errorf("evidence %q", got)
	}
	if v.Score("toxicity") != 250_000 || v.Duration != 120*time.Microsecond || v.ResultID != audit.HotResultID("acme", e.id, e.digest()) {
		t.Errorf("verdict %+v", v)
	}

	for _, tc := range []struct {
		tenant string
		id     audit.ID
	}{{"beta", e.id}, {"acme", sample("beta", 0).id}, {"acme", audit.NewID(noon)}} {
		if _, err := f.WithTenant(tc.tenant).Get(t.Context(), tc.id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("tenant %s, id %s: %v", tc.tenant, tc.id, err)
		}
	}
}

func TestGetShowsIDConflict(t *testing.T) {
	f := newFixture(t)
	e := sample("acme", 0)
	other := e
	other.content, other.response, other.broker, other.offset = "other content", "Something else.", e.broker.Add(-time.Minute), 9
	f.write(e, other)
	r, err := f.WithTenant("acme").Get(t.Context(), e.id)
	if err != nil {
		t.Fatal(err)
	}
	if !r.IDConflict || len(r.Conflicts) != 1 || r.Interaction.Response != other.response || r.Conflicts[0].Digest != e.digest() {
		t.Errorf("conflict %v, %d others, response %q: the first delivered content is the record", r.IDConflict, len(r.Conflicts), r.Interaction.Response)
	}
}

func TestGetTakesNewestVerdictOfEachAnalyzer(t *testing.T) {
	f := newFixture(t)
	e := sample("acme", 1)
	f.write(e)
	extra := func(analyzer, result string, at time.Time, status audit.Status) {
		r := e.verdictRow()
		r["analyzer"], r["result_id"], r["analysis_ts"], r["status"] = analyzer, audit.DeriveID(result).String(), at, string(status)
		f.insert("verdicts", r)
	}
	extra("judge", "1", e.broker.Add(time.Minute), audit.Failed)
	extra("judge", "2", e.broker.Add(time.Hour), audit.Done)
	r, err := f.WithTenant("acme").Get(t.Context(), e.id)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Verdicts) != 2 || r.Verdicts[0].Analyzer != audit.HotAnalyzer || r.Verdicts[1].Status != audit.Done {
		t.Errorf("verdicts %+v", r.Verdicts)
	}
}

func TestGetAfterTheDrop(t *testing.T) {
	f := newFixture(t)
	e := sample("acme", 0)
	f.write(e)
	f.exec("ALTER TABLE {{db}}.interaction_texts DROP PARTITION ('std', '" + e.at.Format(time.DateOnly) + "')")
	r, err := f.WithTenant("acme").Get(t.Context(), e.id)
	if err != nil {
		t.Fatal(err)
	}
	if r.TextState != store.TextDropped || r.Interaction.Response != "" || r.Interaction.UserID != "" || r.Evidence(r.Verdicts[0].Findings[0]) != "" {
		t.Errorf("text %s, %+v", r.TextState, r.Interaction)
	}
	if !r.BiasDetected || len(r.Verdicts[0].Findings) != 2 {
		t.Error("facts of the analysis must outlive the text")
	}
}

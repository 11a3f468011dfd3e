package gates_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/gates"
)

// Everything below runs on one store and one log, each part for a tenant of its own.
func TestGates(t *testing.T) {
	w := newWorld(t)
	for _, part := range []struct {
		tenant string
		run    func(*testing.T, *world)
	}{
		{"contract", contract}, {"names", namesAndOrder}, {"all", allIsShown}, {"restart", restart}, {"sweep", sweep}, {"pages", pages}, {"answers", whoMayAnswer}, {"announced", announced},
		{"streamed", streamed}, {"dropped", dropped}, {"race", sixteenDeciders},
	} {
		t.Run(part.tenant, func(t *testing.T) { part.run(t, w.on(t, part.tenant)) })
	}
}

// What seed 001 says of gates, one after the other.
func contract(t *testing.T, w *world) {
	ann, counted := w.who("ann"), &tally{n: map[string]int{}}
	for _, tc := range []struct {
		name    string
		cfg     gates.Config
		call    func(context.Context, gates.Gate) (gates.Answer, error)
		timeout time.Duration
		answer  *gates.Answer
		want    string // approved, reason, detail
	}{
		{"on approval: the response passes through with hitlGateTriggered", asking(), nil, 0, &gates.Answer{Approve: true}, "true approved  ann"},
		{"on denial: reason denied, the operator's words", asking(), nil, 0, &gates.Answer{Note: "Operator rejected the action"}, "false denied Operator rejected the action ann"},
		{"on timeout: reason timeout", asking(), nil, 200 * time.Millisecond, nil, "false timeout  "},
		{"no callback: auto-denied at once", gates.DefaultConfig(), nil, 0, nil, "false denied nobody is set up to be asked: no approvers (gates.approvers), no webhook (gates.webhook.url), no callback "},
		{"a callback approves", gates.DefaultConfig(), func(_ context.Context, g gates.Gate) (gates.Answer, error) {
			if g.Request.Rule.Description != "Financial transaction" || *g.Request.MatchedText != "transfer $5,000 to account" || g.Request.Provider != "openai" || g.Request.Method != "chat.completions.create" {
				return gates.Answer{Note: "asked wrongly"}, nil
			}
			return gates.Answer{Approve: true, Note: "go"}, nil
		}, 0, nil, "true approved go callback"},
		{"a callback denies", gates.DefaultConfig(), func(context.Context, gates.Gate) (gates.Answer, error) {
			return gates.Answer{Note: "no"}, nil
		}, 0, nil, "false denied no callback"},
		{"a callback that panics is no approval", gates.DefaultConfig(), func(context.Context, gates.Gate) (gates.Answer, error) { panic("a word") }, 300 * time.Millisecond, nil, "false timeout  "},
		{"a callback that fails is no approval", gates.DefaultConfig(), func(context.Context, gates.Gate) (gates.Answer, error) {
			return gates.Answer{Approve: true}, errors.New("broken")
		}, 300 * time.Millisecond, nil, "false timeout  "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := w.start(tc.cfg, func(p *gates.Parts) { p.Callback, p.Observer = tc.call, counted })
			defer p.stop()
			r := w.transfer()
			r.Timeout = tc.timeout
			id := w.open(p, r)
			if tc.answer != nil {
				w.decide(p, id, ann, *tc.answer)
			}
			d := w.wait(p, id)
			if got := strings.Join([]string{text(t, d.Approved), string(d.Reason), d.Detail, d.By}, " "); got != tc.want || !d.HITLGateTriggered || d.At.IsZero() {
				t.Errorf("%q, want %q (%+v)", got, tc.want, d)
			}
		})
	}
	if got := text(t, counted.n); got != `{"approved":2,"denied":3,"opened":8,"timeout":3}` {
		t.Errorf("counted %s", got)
	}
	p := w.start(asking(), nil)
	if g, err := p.Get(t.Context(), w.tenant, w.open(p, w.transfer())); err != nil || g.Expires.Sub(g.Opened) != 5*time.Minute {
		t.Errorf("the default is 5 minutes: %+v %v", g, err)
	}
}

// A person sees all that matched, or is not asked: places that say the same are one, more than a hundred that differ are denied.
func allIsShown(t *testing.T, w *world) {
	p := w.start(asking(), nil)
	r := w.transfer()
	r.Matches = nil
	for i := range 150 {
		r.Matches = append(r.Matches, gates.Match{Rule: r.Rule, Text: "pay $1", Side: audit.Output, Span: audit.Span{Start: uint32(10 * i), End: uint32(10*i + 6)}})
	}
	r.Matches = append(r.Matches, gates.Match{Rule: r.Rule, Text: "transfer $1,000,000", Side: audit.Output, Span: audit.Span{Start: 1500, End: 1519}},
		gates.Match{Rule: r.Rule, Text: strings.Repeat("ä", 5000), Side: audit.Output, Span: audit.Span{Start: 2000, End: 7000}})
	g, err := p.Get(t.Context(), w.tenant, w.open(p, r))
	if err != nil || g.State != audit.GateOpen || len(g.Matches) != 3 || g.Matches[1].Text != "transfer $1,000,000" || !strings.HasSuffix(g.Matches[2].Text, "ä… [2952 more characters]") {
		t.Errorf("%+v %v", g, err)
	}
	for i := range r.Matches {
		r.Matches[i].Text = fmt.Sprint("pay $", i)
	}
	if d := w.wait(p, w.open(p, r)); d.Approved || d.Reason != "denied" || !strings.Contains(d.Detail, "more than 100 different texts") {
		t.Errorf("%+v", d)
	}
}

// The names are the seed's; the first match by position names the gate, all are listed.
func namesAndOrder(t *testing.T, w *world) {
	p := w.start(asking(), nil)
	r := w.transfer()
	r.Matches = []gates.Match{
		{Rule: gates.Rule{ID: "data_deletion", Description: "Data deletion", Pattern: "delete", Category: "data"}, Text: "delete all user records", Side: audit.Output, Span: audit.Span{Start: 40, End: 63}},
		{Rule: r.Rule, Text: r.MatchedText, Side: audit.Output, Span: audit.Span{Start: 4, End: 30}},
	}
	r.Interaction, r.TraceID, r.Model = audit.NewID(time.Now()), "0af7651916cd43dd8448eb211c80319c", "gpt"
	id := w.open(p, r)
	g, err := p.Get(t.Context(), w.tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	var seed struct {
		ID, State     string
		InteractionID string
		Decision      any
		Request       struct {
			Rule             struct{ ID, Description, Pattern, Category string }
			MatchedText      string
			Provider, Method string
			Timestamp        int64
			Rules            []struct {
				Rule        gates.Rule
				MatchedText string
				Start, End  int
			}
		}
	}
	dec := json.NewDecoder(strings.NewReader(text(t, gates.Show(g, true))))
	if err := dec.Decode(&seed); err != nil {
		t.Fatal(err)
	}
	q := seed.Request
	if seed.ID != id.String() || seed.State != "open" || seed.Decision != nil || seed.InteractionID != r.Interaction.String() || q.Rule.ID != "financial" || q.Rule.Pattern != "transfer" ||
		q.MatchedText != r.MatchedText || q.Provider != "openai" || q.Method != r.Method || q.Timestamp != 1_760_000_000_123 || len(q.Rules) != 2 || q.Rules[1].Rule.ID != "data_deletion" || q.Rules[1].MatchedText != "delete all user records" || q.Rules[1].End != 63 {
		t.Errorf("%s", text(t, gates.Show(g, true)))
	}
	if g.User != "u-7" || strings.Contains(text(t, gates.Show(g, true)), "u-7") {
		t.Error("the user is known, and not shown")
	}
	if hidden := text(t, gates.Show(g, false)); strings.Contains(hidden, "$5,000") || strings.Contains(hidden, "records") || !strings.Contains(hidden, `"matchedText":null`) {
		t.Errorf("without texts: %s", hidden)
	}
	d := w.decide(p, id, w.who("ann"), gates.Answer{Approve: true, Note: "fine by me"})
	for _, name := range []string{`"approved":true`, `"reason":"approved"`, `"detail":"fine by me"`, `"hitlGateTriggered":true`, `"decidedBy":"ann"`} {
		if !strings.Contains(text(t, gates.Show(d, true)), name) {
			t.Errorf("%s is not in %s", name, text(t, gates.Show(d, true)))
		}
	}
	if strings.Contains(text(t, gates.Show(d, false)), "fine by me") {
		t.Error("words are shown to who may not read texts")
	}
	if _, err := p.Open(t.Context(), func() gates.Request { r := r; r.ID = id; return r }()); err != nil {
		t.Errorf("opened again under its id: %v", err)
	}
	if g, err := p.Get(t.Context(), w.tenant, id); err != nil || g.State != audit.GateApproved || g.Note != "fine by me" || g.Matches[0].Text != r.MatchedText {
		t.Errorf("%+v %v", g, err)
	}
}

// A gate outlives the process that opened it, and an answer the one that took it.
func restart(t *testing.T, w *world) {
	first := w.start(asking(), nil)
	id, late := w.open(first, w.transfer()), w.transfer()
	late.Timeout = 100 * time.Millisecond
	expired := w.open(first, late)
	ctx, cancel := context.WithCancel(t.Context())
	broken := make(chan error, 1)
	go func() { _, err := first.Wait(ctx, id); broken <- err }()
	cancel()
	if err := <-broken; audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("a wait that was broken off: %v", err)
	}
	first.stop()

	second := w.start(asking(), nil)
	told := make(chan gates.Decision, 1)
	go func() { told <- w.wait(second, id) }()
	other := w.start(asking(), nil)
	w.decide(other, id, w.who("bob"), gates.Answer{Approve: true, Note: "after the restart"})
	if d := <-told; !d.Approved || d.By != "bob" || d.Detail != "after the restart" {
		t.Errorf("%+v", d)
	}
	if d := w.wait(second, expired); d.Approved || d.Reason != gates.TimedOut {
		t.Errorf("a deadline that passed meanwhile: %+v", d)
	}
	second.stop()
	other.stop()

	third := w.start(asking(), nil)
	if d := w.wait(third, id); !d.Approved || d.By != "bob" || d.Detail != "after the restart" {
		t.Errorf("%+v", d)
	}
	g, mine, err := third.Decide(t.Context(), id, w.who("carl"), gates.Answer{Note: "too late"})
	if err != nil || mine || g.State != audit.GateApproved || g.By != "bob" || g.Note != "after the restart" {
		t.Errorf("a late answer: %+v %v %v", g, mine, err)
	}
	if _, mine, err := third.Decide(t.Context(), id, w.who("bob"), gates.Answer{Approve: true}); err != nil || !mine {
		t.Errorf("the same answer again: %v %v", mine, err)
	}
	if n := w.count("SELECT count() FROM {{db}}.interaction_texts FINAL WHERE text = 'too late'"); n != 0 {
		t.Error("words of a late answer are kept")
	}
}

// What a process left undone is done by the sweep: rows of decisions, and the end of gates nobody waits for.
func sweep(t *testing.T, w *world) {
	p := w.start(asking(), nil)
	before, err := p.Sweep(t.Context()) // what other tests left
	if err != nil {
		t.Fatal(err)
	}
	open, decided, r := w.open(p, w.transfer()), w.open(p, w.transfer()), w.transfer()
	r.Timeout = time.Millisecond
	expired := w.open(p, r)
	value := json.RawMessage(`{"approved":true,"state":"approved","by":"ann"}`)
	if _, err := p.log.Decide(t.Context(), gateKey(decided), value); err != nil {
		t.Fatal(err)
	}
	if g, err := p.Get(t.Context(), w.tenant, decided); err != nil || g.State != audit.GateApproved {
		t.Errorf("without its row: %+v %v", g, err)
	}
	if n, err := p.Sweep(t.Context()); err != nil || n != (gates.Swept{Open: before.Open + 1, TimedOut: 1, Mended: 1}) {
		t.Errorf("%+v %v", n, err)
	}
	if n, err := p.Sweep(t.Context()); err != nil || n != (gates.Swept{Open: before.Open + 1}) {
		t.Errorf("again: %+v %v", n, err)
	}
	for state, want := range map[audit.GateState]audit.ID{audit.GateOpen: open, audit.GateApproved: decided, audit.GateTimeout: expired} {
		gs, next, err := p.List(t.Context(), w.tenant, state, 0, "")
		if err != nil || next != "" || len(gs) != 1 || gs[0].ID != want || gs[0].Matches[0].Text != "transfer $5,000 to account" {
			t.Errorf("%s: %+v %q %v", state, gs, next, err)
		}
	}
}

// Pages go from the newest to the oldest, and hold through decisions in between.
func pages(t *testing.T, w *world) {
	p := w.start(asking(), nil)
	var want []audit.ID
	for range 5 {
		want = append(want, w.open(p, w.transfer()))
	}
	var got []audit.ID
	for after := ""; ; {
		gs, next, err := p.List(t.Context(), w.tenant, "", 2, after)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range gs {
			got = append(got, g.ID)
		}
		if after = next; next == "" {
			break
		}
	}
	slices.SortFunc(want, func(a, b audit.ID) int { return strings.Compare(b.String(), a.String()) })
	slices.SortStableFunc(got, func(a, b audit.ID) int { return strings.Compare(b.String(), a.String()) })
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, _, err := p.List(t.Context(), w.tenant, audit.GateOpen, 2, "AAAA"); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("a cursor that is none: %v", err)
	}
}

// Who answers: not without the permission, not another tenant, not who asked.
func whoMayAnswer(t *testing.T, w *world) {
	p := w.start(asking(), nil)
	id := w.open(p, w.transfer())
	stranger := w.who("eve")
	stranger.Tenant = "stranger"
	viewer := &auth.Principal{Tenant: w.tenant, Subject: "vera", May: auth.Grants(auth.Reviewer), Verified: true}
	for name, tc := range map[string]struct {
		by   *auth.Principal
		want error
	}{
		"another tenant":          {stranger, gates.ErrUnknown},
		"without the permission":  {viewer, gates.ErrNoPermission},
		"nobody":                  {nil, gates.ErrNoPermission},
		"the caller who asked":    {w.who("svc-1"), gates.ErrOwn},
		"whose interaction it is": {w.who("u-7"), gates.ErrOwn},
	} {
		if _, _, err := p.Decide(t.Context(), id, tc.by, gates.Answer{Approve: true}); !errors.Is(err, tc.want) || audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.Get(t.Context(), "stranger", id); !errors.Is(err, gates.ErrUnknown) {
		t.Errorf("read by another tenant: %v", err)
	}
	if gs, _, err := p.List(t.Context(), "stranger", "", 0, ""); err != nil || len(gs) != 0 {
		t.Errorf("listed by another tenant: %v %v", gs, err)
	}
	if _, _, err := p.Decide(t.Context(), id, w.who("ann"), gates.Answer{Note: strings.Repeat("x", 2001)}); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "note") {
		t.Errorf("long words: %v", err)
	}
	if _, err := p.Open(t.Context(), gates.Request{Tenant: "no tenant", Timeout: 48 * time.Hour}); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "tenant") || !strings.Contains(err.Error(), "rule") || !strings.Contains(err.Error(), "timeout") {
		t.Errorf("a request with faults: %v", err)
	}
	if g, err := p.Get(t.Context(), w.tenant, id); err != nil || g.State != audit.GateOpen {
		t.Errorf("%+v %v", g, err)
	}
	// Who is nobody in particular may: then nobody knows who asked either.
	anybody := &auth.Principal{Tenant: w.tenant, Subject: "anonymous", May: auth.Permissions}
	r := w.transfer()
	r.Requester, r.User = "anonymous", ""
	w.decide(p, w.open(p, r), anybody, gates.Answer{Approve: true})
}

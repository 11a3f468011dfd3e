package graph_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/graph/generated"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge"
	"github.com/evenhand/evenhand/judge/lane"
	"github.com/evenhand/evenhand/store"
)

// asked is the topic of requests to the judge.
type asked struct {
	mu   sync.Mutex
	ms   []*message.Message
	down bool
}

func (a *asked) Publish(topic string, ms ...*message.Message) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down || topic != kafkaconn.Judge {
		return audit.E("asked", audit.KindUnavailable, errors.New("away"))
	}
	a.ms = append(a.ms, ms...)
	return nil
}

func (a *asked) all(t *testing.T) (rs []judge.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.ms {
		r, err := judge.Decode(m.Payload)
		if err != nil {
			t.Fatal(err)
		}
		rs = append(rs, r)
	}
	return rs
}

// judgeVersion is the model and the prompt that are set up.
const judgeVersion = "c1-1/gpt"

// of asks about what a store holds, as cmd/evenhand does.
func (a *asked) of(s *store.Store) graph.Judge {
	return &asker{lane.Asker{Publisher: a, Asked: func(judge.Reason, int) {}, Logger: slog.New(slog.DiscardHandler)}, s}
}

type asker struct {
	lane.Asker
	store *store.Store
}

func (a *asker) Request(ctx context.Context, tenant string, id audit.ID, again bool) (generated.JudgeRequestOutcome, audit.ID, error) {
	w, result, err := a.Asker.Request(ctx, a.store.WithTenant(tenant), id, judgeVersion, again)
	return map[lane.Wish]generated.JudgeRequestOutcome{lane.Requested: "REQUESTED", lane.AlreadyJudged: "ALREADY_JUDGED", lane.NothingToJudge: "NOTHING_TO_JUDGE"}[w], result, err
}

const askJudge = `mutation($id: ID!, $again: Boolean! = false) { askJudge(id: $id, again: $again) { outcome verdictId } }`

// The judge is asked on request, once for all who ask while it is under way, and never about another tenant's.
func TestAskJudge(t *testing.T) {
	f := newFixture(t)
	topic := &asked{}
	f.api = newAPI(t, graph.Parts{Store: f.Store, Judge: topic.of(f.Store)})
	r, bare, dropped := sample("acme", 21), sample("acme", 22), sample("acme", 23)
	bare.Interaction.Response = ""
	f.write(r)
	f.write(bare)
	f.write(dropped)
	f.run("ALTER TABLE {{db}}.interaction_texts DELETE WHERE event_id = toUUID(?) SETTINGS mutations_sync = 2", dropped.Interaction.ID.String())
	ask := func(of audit.Record, again bool) (outcome, verdict string) {
		t.Helper()
		var got struct {
			AskJudge struct {
				Outcome   string
				VerdictID *string `json:"verdictId"`
			}
		}
		f.get(as(auth.Reviewer), askJudge, fmt.Sprintf(`{"id":%q,"again":%v}`, of.Interaction.ID, again), &got)
		if got.AskJudge.VerdictID != nil {
			verdict = *got.AskJudge.VerdictID
		}
		return got.AskJudge.Outcome, verdict
	}
	for _, again := range []bool{false, true, false} { // nobody has answered yet
		outcome, verdict := ask(r, again)
		rs := topic.all(t)
		last := rs[len(rs)-1]
		if outcome != "REQUESTED" || verdict != last.ResultID().String() || last.Attempt != 1 || last.Why != judge.Asked || last.Tenant != "acme" || last.ID != r.Interaction.ID || last.Digest != r.Interaction.Digest {
			t.Errorf("%s %s, %+v", outcome, verdict, last)
		}
	}
	f.judged(&r, 1, `{}`)
	if outcome, _ := ask(r, false); outcome != "REQUESTED" { // another model, another verdict
		t.Error(outcome)
	}
	id := f.judgedBy(&r, 2, judgeVersion, `{}`)
	if outcome, verdict := ask(r, false); outcome != "ALREADY_JUDGED" || verdict != id.String() {
		t.Error(outcome, verdict)
	}
	before := len(topic.all(t))
	if outcome, verdict := ask(r, true); outcome != "REQUESTED" || verdict != topic.all(t)[before].ResultID().String() || topic.all(t)[before].Attempt != 3 {
		t.Error(outcome, verdict)
	}
	for name, of := range map[string]audit.Record{"no response": bare, "no texts": dropped} {
		if outcome, verdict := ask(of, false); outcome != "NOTHING_TO_JUDGE" || verdict != "" {
			t.Error(name, outcome, verdict)
		}
	}

	other := as(auth.Admin)
	other.Tenant = "beta"
	before = len(topic.all(t))
	given := fmt.Sprintf(`{"id":%q}`, r.Interaction.ID)
	for name, tc := range map[string]struct {
		who         *auth.Principal
		given, want string
	}{
		"another tenant's": {other, given, "NOT_FOUND"},
		"unknown":          {admin, fmt.Sprintf(`{"id":%q}`, audit.DeriveID("nobody")), "NOT_FOUND"},
		"no id":            {admin, `{"id":"7"}`, "BAD_USER_INPUT"},
		"a viewer":         {as(auth.Viewer), given, "FORBIDDEN"},
		"a service":        {as(auth.Service), given, "FORBIDDEN"},
		"nobody":           {nil, given, "UNAUTHENTICATED"},
	} {
		if a := f.ask(tc.who, askJudge, tc.given); a.codes() != tc.want {
			t.Errorf("%s: %s %+v, want %s", name, a.Data, a.Errors, tc.want)
		}
	}
	if n := len(topic.all(t)); n != before {
		t.Errorf("%d requests that nobody may make", n-before)
	}
	topic.down = true
	if a := f.ask(admin, askJudge, `{"id":"`+r.Interaction.ID.String()+`","again":true}`); a.codes() != "UNAVAILABLE" {
		t.Errorf("without brokers: %+v", a.Errors)
	}
	f.api = newAPI(t, graph.Parts{Store: f.Store})
	if outcome, verdict := ask(r, false); outcome != "JUDGE_OFF" || verdict != "" {
		t.Error(outcome, verdict)
	}
}

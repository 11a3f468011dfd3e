package mend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/judge/replay"
)

// event is the native event of a round.
type event struct {
	ID           string         `json:"id"`
	Timestamp    string         `json:"timestamp"`
	TraceID      string         `json:"trace_id"`
	Conversation string         `json:"conversation_id,omitempty"`
	Application  string         `json:"application,omitempty"`
	DecisionID   string         `json:"decision_id,omitempty"`
	Domain       string         `json:"domain,omitempty"`
	UserID       string         `json:"user_id,omitempty"`
	UserEmail    string         `json:"user_email,omitempty"`
	UserRole     string         `json:"user_role,omitempty"`
	Messages     []turn         `json:"messages"`
	Response     string         `json:"response,omitempty"`
	Provider     string         `json:"provider,omitempty"`
	Model        string         `json:"model,omitempty"`
	Input        int            `json:"prompt_tokens,omitempty"`
	Output       int            `json:"response_tokens,omitempty"`
	LatencyMS    int64          `json:"latency_ms"`
	CostUSD      float64        `json:"estimated_cost_usd,omitempty"`
	Status       string         `json:"status"`
	Error        string         `json:"error_message,omitempty"`
	Metadata     map[string]any `json:"metadata"`
}

type turn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// record keeps a round as an interaction; round 0 is one already.
func (r *run) record(ctx context.Context, round replay.Round) error {
	if round.N == 0 {
		r.ids = append(r.ids, r.of.ID)
		return nil
	}
	note := replay.RoundNoteOf(r.of.ID, r.id, &round)
	in, said := r.of, round.Response
	e := event{
		ID: replay.RoundID(r.of.ID, r.id, round.N, note.Outcome), Timestamp: r.m.Now().UTC().Format("2006-01-02T15:04:05.000Z07:00"), TraceID: in.TraceID,
		Conversation: in.Conversation, Application: in.Application, DecisionID: in.DecisionID, Domain: cmp.Or(in.DomainGiven, string(in.Domain)),
		UserID: in.UserID, UserEmail: in.UserEmail, UserRole: in.UserRole, Response: said.Text, Provider: in.Provider, Model: cmp.Or(said.Model, r.question.Model),
		Input: said.Usage.Input, Output: said.Usage.Output, LatencyMS: round.Called.Milliseconds(), CostUSD: said.CostUSD, Status: "success",
		Metadata: map[string]any{"replay": note},
	}
	if round.Stop == replay.StopCall || said.Text == "" {
		e.Status, e.Error = "error", "the model gave no answer"
	}
	if r.question.System != "" {
		e.Messages = append(e.Messages, turn{"system", r.question.System})
	}
	for _, m := range append(r.question.Messages[:len(r.question.Messages):len(r.question.Messages)], llm.Message{Role: "user", Content: round.Feedback.Message()}) {
		e.Messages = append(e.Messages, turn(m))
	}
	value, err := json.Marshal(e)
	if err != nil {
		return audit.E(op, audit.KindInternal, errors.New("the round is no JSON"))
	}
	m, made, faults := r.m.Decoder.Prepare(value, ingest.Sender{Tenant: in.Tenant, Now: r.m.Now(), Limit: r.m.Message})
	if len(faults) > 0 {
		return audit.E(op, audit.KindInvalid, fmt.Errorf("the round is no event: %s %s", faults[0].Field, faults[0].Code))
	}
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	if err := r.m.Producer.Produce(ctx, []ingest.Message{m}); err != nil {
		return err
	}
	r.ids = append(r.ids, made.ID)
	return nil
}

const recordWithin = 10 * time.Second

// Package mend replays a call whose response fails validation (seed 004's article): it joins the loop of package
// judge/replay with the Compliance Evaluator and the rules as its validator, the model that the call came from, and the log.
//
// Each replay is an interaction of its own in the log, with the whole conversation that was sent. Its id tells where it
// belongs (see [replay.RoundID]), so that figures outlive the texts; its metadata say the same under "replay". A response that
// cannot be recorded is not used.
//
// Cost: one call of the original model and one evaluation a round, all within Config.Timeout. Errors hold no text.
package mend

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/places"
	"github.com/evenhand/evenhand/judge/replay"
)

const op = "judge/mend"

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Rounds is how many replays there are where the caller does not say, and at most. Default 2; 1..10.
	Rounds int `koanf:"rounds"`
	// Review replays what a person should look at, too. Default false: such responses stay as they are.
	Review bool `koanf:"review"`
	// Timeout bounds all rounds of one call together. Default 5m; 1s..30m.
	Timeout time.Duration `koanf:"timeout"`
	// Concurrency is the number of calls mended at once; more are refused. The last place (of 16 the last two, and so on) is for tenants
	// that hold less than half. Default 4; 1..1024.
	Concurrency int `koanf:"concurrency"`
}

// DefaultConfig gives the defaults.
func DefaultConfig() Config { return Config{Rounds: 2, Timeout: 5 * time.Minute, Concurrency: 4} }

// Validate reports every fault at once, keys as an operator writes them.
func (c Config) Validate() error {
	var errs []error
	for _, n := range []struct {
		key             string
		value, low, top int
	}{{"rounds", c.Rounds, 1, 10}, {"concurrency", c.Concurrency, 1, 1024}} {
		if n.value < n.low || n.value > n.top {
			errs = append(errs, fmt.Errorf("replay.%s: %d is not in %d..%d", n.key, n.value, n.low, n.top))
		}
	}
	if c.Timeout < time.Second || c.Timeout > 30*time.Minute {
		errs = append(errs, fmt.Errorf("replay.timeout: %v is not in 1s..30m", c.Timeout))
	}
	return errors.Join(errs...)
}

// Parts are what a Mender works with; all but Message and Now are needed.
type Parts struct {
	Validator *Validator
	// Origin gives the model to ask again and the name to ask it by; model is the one that the caller wants instead, or "".
	Origin   func(in *audit.Interaction, model string) (m llm.Model, name string, err error)
	Decoder  *ingest.Decoder
	Producer ingest.Producer
	Message  int              // bytes of a message in the log; 0: the decoder's limit alone
	Now      func() time.Time // nil is time.Now
}

// Mender replays calls. It is safe for concurrent use.
type Mender struct {
	cfg Config
	Parts
	room *places.Places
}

// New checks the configuration; a fault is of KindInvalid.
func New(c Config, p Parts) (*Mender, error) {
	if err := c.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	if p.Validator == nil || p.Origin == nil || p.Decoder == nil || p.Producer == nil {
		return nil, audit.E(op, audit.KindInternal, errors.New("a part is missing"))
	}
	if p.Now == nil {
		p.Now = time.Now
	}
	return &Mender{c, p, places.New(c.Concurrency)}, nil
}

// Wish is what a caller may choose.
type Wish struct {
	Rounds int    // 0: Config.Rounds, which it may not exceed
	Model  string // "": the one that the call came from
}

// Why a call cannot be made again from what is known of it.
var (
	ErrTextsDropped = errors.New("the texts are dropped, so nothing can be validated or asked again")
	ErrTextsCut     = errors.New("the texts were longer than ingest.text_bytes and are not there as a whole")
	ErrNoResponse   = errors.New("there is no response to validate")
	ErrNotPlain     = errors.New("the call has tools, or parts that are no text: it cannot be made again from the record")
	ErrNoModel      = errors.New("the record names no model; say which one to ask")
)

var errBusy = errors.New("too many calls are mended at once")

// Mend validates the response of a recorded call and replays the call while that helps. Errors: KindInvalid for a call that
// cannot be made again, a wish beyond the settings and llm.ErrOff; KindOverloaded where too much is under way or the budget is
// spent; KindUnavailable where the validator is away or the caller went. What goes wrong once the first response was validated,
// the end of Config.Timeout too, is told in the result, which then has the best response until there.
func (m *Mender) Mend(ctx context.Context, in *audit.Interaction, w Wish) (*Result, error) {
	if w.Rounds < 0 || w.Rounds > m.cfg.Rounds {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("rounds: %d is not in 1..%d (replay.rounds)", w.Rounds, m.cfg.Rounds))
	}
	if w.Rounds == 0 {
		w.Rounds = m.cfg.Rounds
	}
	switch {
	case in.Truncated:
		return nil, audit.E(op, audit.KindInvalid, ErrTextsCut)
	case in.Response == "":
		return nil, audit.E(op, audit.KindInvalid, ErrNoResponse)
	}
	q, err := question(in)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	model, name, err := m.Origin(in, w.Model)
	if err != nil {
		return nil, err
	}
	if !m.room.Enter(in.Tenant) {
		return nil, audit.E(op, audit.KindOverloaded, errBusy)
	}
	defer m.room.Leave(in.Tenant)
	within, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	q.Model = name
	r := &run{m: m, of: in, id: audit.NewID(m.Now()), model: model, question: q}
	found, err := replay.Run(within, replay.Response{Text: in.Response, Model: in.Model}, replay.Options{
		Call: r.call, Record: r.record, Rounds: w.Rounds, Review: m.cfg.Review,
		Check: func(ctx context.Context, text string) (*replay.Check, error) {
			said := *in
			said.Response, said.ResponseJSON = text, ""
			return m.Validator.Check(ctx, &said)
		},
	})
	if err != nil && found.Best >= 0 && ctx.Err() == nil {
		err = nil
	}
	return r.result(found), err
}

// run is one loop.
type run struct {
	m        *Mender
	of       *audit.Interaction
	id       audit.ID
	model    llm.Model
	question llm.Request
	ids      []audit.ID // of the rounds' interactions, round 0's first
}

var errEmpty = errors.New("the model answered nothing")

// call makes the original call with the validator's findings behind it.
func (r *run) call(ctx context.Context, f replay.Feedback) (replay.Response, error) {
	q := r.question
	q.Messages = append(q.Messages[:len(q.Messages):len(q.Messages)], llm.Message{Role: "user", Content: f.Message()})
	a, err := r.model.Complete(ctx, q)
	if err != nil {
		return replay.Response{}, err
	}
	said := replay.Response{Text: a.Text, Model: a.Model, Usage: a.Usage, CostUSD: a.CostUSD}
	if a.Text == "" { // a refusal, too: it answers another question than the one that was asked
		return said, audit.E(op, audit.KindInvalid, errEmpty)
	}
	return said, nil
}

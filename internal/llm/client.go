package llm

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/places"
	"github.com/evenhand/evenhand/internal/wait"
)

// Options is what the program sets. The zero value works.
type Options struct {
	// Price tells what a call cost; nil knows no prices.
	Price func(model string, u Usage) (usd float64, ok bool)
	// Observer counts; nil counts nothing.
	Observer Observer
	// CallersKeys lets a client be made where no model is configured: a request without a key of its own gets [ErrOff] then.
	CallersKeys bool
	// Transport is for tests and proxies; nil connects.
	Transport http.RoundTripper
}

// Client asks one server. It is safe for concurrent use.
type Client struct {
	cfg      Config
	key      string
	price    func(string, Usage) (float64, bool)
	seen     seen
	chat     openai.ChatCompletionService
	http     *http.Client
	circuits circuits
	budget   budget
	dialects dialects
	slots    *places.Places
}

var _ Model = (*Client)(nil)

const op = "llm"

// New makes a client; it connects with the first question. Without a server and a key it fails with [ErrOff].
func New(c Config, o Options) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	key := c.key()
	if c.BaseURL == "" && key == "" && !o.CallersKeys {
		return nil, audit.E(op, audit.KindInvalid, ErrOff)
	}
	if o.Transport == nil {
		o.Transport = newTransport(10 * time.Second)
	}
	m := &Client{
		cfg: c, key: key, price: o.Price, seen: seen{to: o.Observer}, slots: places.New(c.Concurrency),
		http:   &http.Client{Transport: transport{o.Transport}},
		budget: budget{calls: c.BudgetCalls, tokens: c.BudgetTokens},
	}
	m.chat = openai.NewChatCompletionService(option.WithHTTPClient(m.http), option.WithMaxRetries(0), option.WithHeader("User-Agent", "evenhand"))
	m.circuits = circuits{failures: c.BreakerFailures, wait: c.BreakerWait, ping: m.ping, of: map[string]*circuit{}, told: func(model, state string) {
		if model == c.Model { // others come from callers
			m.seen.circuit(state)
		}
	}}
	m.seen.circuit("closed")
	return m, nil
}

// Close ends what the client asks by itself and lets idle connections go.
func (c *Client) Close() {
	c.circuits.close()
	if t, ok := c.http.Transport.(transport).next.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Spent tells what a tenant has spent of its budget today.
func (c *Client) Spent(tenant string) Spent { return c.budget.today(tenant) }

// Complete implements [Model].
func (c *Client) Complete(ctx context.Context, q Request) (*Answer, error) {
	start := time.Now()
	q.Model = cmp.Or(q.Model, c.cfg.Model)
	err := q.validate()
	if err == nil && c.cfg.BaseURL == "" && c.key == "" && q.Key == "" {
		err = ErrOff
	}
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	a, f := c.ask(ctx, q)
	took := time.Since(start)
	if f != nil {
		c.seen.failed(q.Model, f, took)
		return nil, f.public()
	}
	a.Duration = took
	c.seen.answered(q.Model, a)
	return a, nil
}

// ask makes attempts until one succeeds, or none is worth it.
func (c *Client) ask(ctx context.Context, q Request) (*Answer, *fault) {
	key := dialectKey(q.Model, q.Schema)
	d := c.dialects.of(key)
	back := &backoff.ExponentialBackOff{InitialInterval: 750 * time.Millisecond, RandomizationFactor: 1. / 3, Multiplier: 2, MaxInterval: c.cfg.RetryWait}
	back.Reset()
	for retries, adapted := 0, false; ; {
		a, f := c.attempt(ctx, q, d)
		if f == nil {
			if adapted { // a text that is refused in any form says nothing about the form
				c.dialects.learn(key, d)
			}
			return a, nil
		}
		if f.said != nil && f.said.filtered() {
			return &Answer{Refusal: "the provider's filter did not let the text through", Finish: codeFilter, Model: q.Model, Form: d.form(q)}, nil
		}
		if next, ok := d.after(f.said, q); ok { // not a retry: it is another question, and only so many can be refused
			d, adapted = next, true
			c.seen.retried(q.Model, "adapted")
			continue
		}
		if !f.retry || retries == c.cfg.Retries {
			return nil, f
		}
		pause := min(back.NextBackOff(), c.cfg.RetryWait)
		if f.after >= 0 {
			pause = f.after
		}
		if end, ok := ctx.Deadline(); pause > c.cfg.RetryWait || ok && time.Until(end) <= pause {
			return nil, f
		}
		retries++
		c.seen.retried(q.Model, f.reason)
		if !wait.For(ctx, pause) {
			return nil, faultOf(ctx, ctx.Err())
		}
	}
}

// attempt asks once, within budget, circuit and slots.
func (c *Client) attempt(ctx context.Context, q Request, d dialect) (*Answer, *fault) {
	h, err := c.budget.reserve(q.Tenant, q.estimate())
	if err != nil {
		return nil, &fault{kind: audit.KindOverloaded, reason: "budget", after: -1, err: err}
	}
	if err := c.circuits.admit(ctx, q.Model); err != nil {
		h.settle(0, 0)
		if errors.Is(err, errOpen) {
			err = &fault{kind: audit.KindUnavailable, reason: "open", after: c.cfg.BreakerWait, err: err}
		}
		return nil, faultOf(ctx, err)
	}
	if err := c.slots.Wait(ctx, q.Tenant); err != nil {
		h.settle(0, 0)
		return nil, faultOf(ctx, err)
	}
	a, f := c.send(ctx, q, d)
	c.slots.Leave(q.Tenant)
	switch {
	case f == nil:
		h.settle(1, a.tokens(q))
	case f.spent:
		h.settle(1, h.tokens) // nobody knows; the server may have worked
	default:
		h.settle(0, 0)
	}
	switch {
	case f == nil || f.alive:
		c.circuits.answered(q.Model)
	case errors.Is(f, context.Canceled): // who goes says nothing about the server
	default:
		c.circuits.failed(ctx, q.Model)
	}
	return a, f
}

// ping tells how a model's server fails at a harmless sentence; a refusal is an answer. It is in nobody's budget.
func (c *Client) ping(ctx context.Context, model string) error {
	q := Request{Model: model, System: "Answer with one word.", Messages: []Message{{Role: "user", Content: "The meeting starts at nine."}}, MaxTokens: 16}
	if _, f := c.send(ctx, q, c.dialects.of(dialectKey(model, nil))); f != nil && !f.alive {
		return f.err
	}
	return nil
}

// send makes one request.
func (c *Client) send(ctx context.Context, q Request, d dialect) (*Answer, *fault) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	opts := []option.RequestOption{option.WithBaseURL(c.cfg.at(q.Model))}
	if c.cfg.APIVersion != "" {
		opts = append(opts, option.WithQuery("api-version", c.cfg.APIVersion))
	}
	if key := cmp.Or(q.Key.Reveal(), c.key); key != "" {
		opts = append(opts, option.WithHeader(c.cfg.carry(key)))
	}
	var res *http.Response
	said, err := c.chat.New(ctx, d.params(q.Model, q), append(opts, option.WithResponseInto(&res))...)
	if err != nil && res != nil && ctx.Err() == nil { // it came whole; what is wrong is its form
		err = errForm
	}
	if err == nil && (said == nil || len(said.Choices) == 0) {
		err = errForm
	}
	if err != nil {
		f := faultOf(ctx, err)
		f.alive = f.alive || q.Key != "" && f.reason == "limited" // a caller's empty account says nothing about the server
		return nil, f
	}
	choice := said.Choices[0]
	a := &Answer{
		Text: choice.Message.Content, Refusal: choice.Message.Refusal, Model: named(said.Model, q.Model), Finish: choice.FinishReason, Form: d.form(q),
		Usage: Usage{Input: count(said.Usage.PromptTokens), Output: count(said.Usage.CompletionTokens)},
	}
	if c.price != nil && a.Usage != (Usage{}) {
		if a.CostUSD, a.Priced = c.price(a.Model, a.Usage); !a.Priced { // servers add dates to names, tables may not have them
			a.CostUSD, a.Priced = c.price(q.Model, a.Usage)
		}
	}
	return a, nil
}

// named is the model as the server names it, which adds dates and variants; what is no model's name is not kept, for it goes into findings.
func named(said, asked string) string {
	if modelFault(said) != "" {
		return asked
	}
	return said
}

// count keeps a server's figure within reason.
func count(n int64) int { return int(min(max(n, 0), 1<<31-1)) }

// public is the error that callers get.
func (f *fault) public() error {
	err := f.err
	if f.kind == audit.KindUnavailable && f.after >= 0 {
		err = &Later{After: f.after, Err: err}
	}
	return audit.E(op, f.kind, err)
}

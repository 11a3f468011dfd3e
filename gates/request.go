package gates

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

// Rule is seed 001's GateRule.
type Rule = audit.GateRule

// Match is a rule and what it matched.
type Match = audit.GateMatch

// Request asks for a person's approval: seed 001's GateRequest (Rule, MatchedText, Provider, Method,
// Timestamp) and what we know besides.
type Request struct {
	Tenant string
	// Matches are all places where rules matched, in any order; the first by position names the gate. None:
	// Rule and MatchedText are the only one.
	Matches     []Match
	Rule        Rule
	MatchedText string
	Provider    string
	Method      string
	Timestamp   time.Time // of the text; zero is now

	// ID is the gate's; opening one again under its id changes nothing. Zero makes a new one.
	ID audit.ID
	// Interaction is the event that the text belongs to; zero when there is none. It may arrive later.
	Interaction audit.ID
	TraceID     string
	Model       string
	Application string
	// Requester is the caller who wants the text, as package auth names callers, and User the person whose
	// interaction it is. Neither may answer the gate.
	Requester string
	User      string
	// Timeout is after how long it is denied; zero takes Config.Timeout.
	Timeout time.Duration
}

const (
	maxMatches = 100     // that are shown; who would have to look at more is not asked
	maxText    = 4 << 10 // bytes of one matched text; the rest is cut off
	maxField   = 256     // bytes of provider, method and the like
	maxPattern = 4 << 10 // bytes
)

// gate checks a request and makes the gate of it. all is false where more matched than is shown to a person, who then cannot approve it:
// of places that say the same one stands for all.
func (r *Request) gate(c Config, now time.Time) (g *audit.HumanGate, all bool, err error) {
	ms := slices.Clone(r.Matches)
	if len(ms) == 0 {
		ms = []Match{{Rule: r.Rule, Text: r.MatchedText, Side: audit.Output}}
	}
	// A prompt comes before its response.
	slices.SortStableFunc(ms, func(a, b Match) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Span.Start, b.Span.Start), cmp.Compare(a.Span.End, b.Span.End))
	})
	var errs []error
	if !auth.ValidTenant(r.Tenant) {
		errs = append(errs, errors.New("tenant: is not a tenant's name"))
	}
	if len(ms) > maxMatches {
		ms = different(ms)
	}
	if all = len(ms) <= maxMatches; !all {
		ms = ms[:maxMatches]
	}
	for i := range ms {
		m := &ms[i]
		if m.Rule.ID == "" || len(m.Rule.ID) > maxField || len(m.Rule.Pattern) > maxPattern || len(m.Rule.Description) > maxPattern || len(m.Rule.Category) > maxField {
			errs = append(errs, fmt.Errorf("rule: of match %d has no id, or one of its fields is too long", i))
		}
		if whole := m.Text; len(whole) > maxText {
			m.Text = audit.Clip(whole, maxText)
			m.Text += fmt.Sprintf("… [%d more characters]", utf8.RuneCountInString(whole[len(m.Text):]))
		}
	}
	timeout := cmp.Or(r.Timeout, c.Timeout)
	if timeout < 0 || timeout > maxTimeout {
		errs = append(errs, fmt.Errorf("timeout: %v is not in 1ms..24h", r.Timeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, false, audit.E("gates: open", audit.KindInvalid, err)
	}
	now = now.UTC().Truncate(time.Millisecond)
	g = &audit.HumanGate{
		ID: r.ID, Tenant: r.Tenant, Event: r.Interaction, Matches: ms, Provider: audit.Clip(r.Provider, maxField), Method: audit.Clip(r.Method, maxField), TraceID: audit.Clip(r.TraceID, maxField),
		Model: audit.Clip(r.Model, maxField), Application: audit.Clip(r.Application, maxField), Requester: audit.Clip(r.Requester, maxField), User: audit.Clip(r.User, maxText),
		At: r.Timestamp.UTC().Truncate(time.Millisecond), Opened: now, Expires: now.Add(max(timeout, time.Millisecond)), State: audit.GateOpen,
	}
	if !all {
		g.Expires = now.Add(time.Millisecond) // should nobody come to deny it
	}
	if g.ID.IsZero() {
		g.ID = audit.NewID(now)
	}
	if r.Timestamp.IsZero() || g.At.Year() < 1970 || g.At.Year() > 2200 {
		g.At = now
	}
	return g, all, nil
}

// different leaves out what says the same as a match before it.
func different(ms []Match) (out []Match) {
	type what struct {
		rule Rule
		side audit.Side
		text string
	}
	seen := map[what]bool{}
	for _, m := range ms {
		if w := (what{m.Rule, m.Side, m.Text}); !seen[w] {
			seen[w], out = true, append(out, m)
		}
	}
	return out
}

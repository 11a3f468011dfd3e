package join

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/pricing"
)

// Options say how calls become events. Decoder and Producer must be set.
type Options struct {
	Decoder  *ingest.Decoder
	Producer ingest.Producer
	// DefaultTenant is that of calls that name none; "" refuses them.
	DefaultTenant string
	// Prices give the cost of calls that tell none; nil gives none.
	Prices *pricing.Table
	// Limit is the size in bytes of an event and its headers; 0 leaves it to the decoder.
	Limit    int
	Observer Observer         // nil: nobody looks
	Logger   *slog.Logger     // nil is quiet
	Now      func() time.Time // nil is time.Now
}

// Observer is told what happens; its methods must be fast and safe for concurrent use. What they are given holds no text.
type Observer interface {
	// Part tells a part that a [Writer] is done with.
	Part(format, kind string)
	// Called tells an event that the broker acknowledged.
	Called(format string)
	// Late tells a part that came after its group was told: "dropped" added nothing, "told_again" is in a second
	// event of the same id; "repeated" is a part that the open group held already.
	Late(outcome string)
	// Withheld tells a call without its texts.
	Withheld()
	// Forced tells a group that was closed early, for want of room.
	Forced()
	// Retried tells that a step ("produce", "mark", "dead_letter", "parts") failed and is tried again.
	Retried(step string, kind audit.Kind)
	// Refused tells a dead letter, by the code of its first fault.
	Refused(reason string)
	// Gap tells offsets that the topic no longer held before they were read.
	Gap(from, to int64)
}

// events makes events of calls and hands them to the log.
type events struct {
	Options
	silent silent
}

func newEvents(o Options) (*events, error) {
	if o.Decoder == nil || o.Producer == nil {
		return nil, audit.E("join: new", audit.KindInvalid, errors.New("there is no decoder or no producer"))
	}
	if o.Observer == nil {
		o.Observer = nobody{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &events{Options: o}, nil
}

// tenantOf is whose a call is: the credential's, else what the payload names, else the default.
func (e *events) tenantOf(p *call.Part) string {
	switch {
	case p.Tenant != "":
		return p.Tenant
	case p.Claimed != "":
		return p.Claimed
	}
	return e.DefaultTenant
}

// message makes the event of a whole call. Texts that the log does not take are cut, which the event's metadata and its mark truncated say: a call of
// many parts may be larger than each of them.
func (e *events) message(p *call.Part) (ingest.Message, []ingest.Fault) {
	if p.CostUSD == nil && e.Prices != nil {
		p.CostUSD = e.Prices.Cost(p.Provider, p.Model, p.Tokens)
	}
	m, faults := e.prepare(p, false)
	for limit := 0; len(faults) > 0 && faults[0].Code == ingest.TooLarge; {
		shorter, to, ok := call.Shorter(*p, limit)
		if !ok {
			break
		}
		limit = to
		shorter.Metadata = maps.Clone(shorter.Metadata)
		if shorter.Metadata == nil {
			shorter.Metadata = map[string]any{}
		}
		shorter.Metadata[call.CutAt] = to
		p = &shorter
		m, faults = e.prepare(p, true)
	}
	return m, faults
}

func (e *events) prepare(p *call.Part, cut bool) (ingest.Message, []ingest.Fault) {
	value, err := p.Event(e.tenantOf(p))
	if err != nil { // JSON that the decoder of a format kept without looking at it
		return ingest.Message{}, []ingest.Fault{{Code: ingest.BadJSON, Message: "the call holds something that is not JSON"}}
	}
	m, _, faults := e.Decoder.Prepare(value, ingest.Sender{Tenant: p.Tenant, Now: e.Now(), Truncated: cut, Limit: e.Limit})
	return m, faults
}

// told is what is counted of a call once the broker has its event.
type told struct{ format, service string }

// made is an event on its way.
type made struct {
	message ingest.Message
	told
	withheld bool
	unread   []string // names of what may be the texts
}

func (e *events) make(p *call.Part) (made, []ingest.Fault) {
	m, faults := e.message(p)
	return made{m, told{p.Format, p.Service}, texts(p) == 0, p.Unread}, faults
}

// produce hands events to the log and counts them.
func (e *events) produce(ctx context.Context, all []made) error {
	if len(all) == 0 {
		return nil
	}
	ms := make([]ingest.Message, len(all))
	for i := range all {
		ms[i] = all[i].message
	}
	if err := e.Producer.Produce(ctx, ms); err != nil {
		return err
	}
	for i := range all {
		e.Observer.Called(all[i].format)
		if all[i].withheld {
			e.withheld(&all[i])
		}
	}
	return nil
}

// Bits of texts.
const (
	prompt = 1 << iota
	answer
)

// texts tells which texts a part has.
func texts(p *call.Part) (bits uint8) {
	if len(p.Messages) > 0 || p.System != "" {
		bits |= prompt
	}
	if len(p.Answers) > 0 {
		bits |= answer
	}
	return bits
}

// said is what is known of texts without their words.
type said struct {
	texts uint8
	size  int  // of the answers, in bytes
	final bool // the answers are not only so far
}

func say(p *call.Part) said {
	return said{texts(p), p.Said(), len(p.Answers) > 0 && !p.SoFar}
}

// adds tells whether s says more than was told: a text that was not there, more of an answer on its way, or the end of one.
func (s said) adds(told said) bool {
	return s.texts&^told.texts != 0 || s.texts&answer != 0 && !told.final && (s.final || s.size > told.size)
}

// and is what was told once s was, too.
func (s said) and(more said) said {
	return said{s.texts | more.texts, max(s.size, more.size), s.final || more.final}
}

type nobody struct{}

func (nobody) Part(string, string)        {}
func (nobody) Called(string)              {}
func (nobody) Late(string)                {}
func (nobody) Withheld()                  {}
func (nobody) Forced()                    {}
func (nobody) Retried(string, audit.Kind) {}
func (nobody) Refused(string)             {}
func (nobody) Gap(int64, int64)           {}

// Package ingest turns messages of the log into interactions: one strict decoder for the native event
// (schemas/events/interaction.v1.json), which may come inside a CloudEvent or as LiteLLM tells it. Its HTTP doors are in package door.
//
// Decode never fails and never panics: a message gives an interaction or a rejection that names every
// field at fault and holds nothing of its text. It decides from the record alone, so a message that is
// read again gives the same ids, times and digest. It costs less than half of what encoding/json takes
// to parse the same event, checks and digest included, and keeps no reference to the record's bytes.
package ingest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// Headers of a record that the decoder reads.
const (
	HeaderTenant  = "evenhand-tenant"   // stands above the payload's tenant_id
	HeaderEventID = "evenhand-event-id" // a UUID for an event without id
	// HeaderEventTime is an RFC 3339 time for an event that tells none by itself or by its id: when a door took
	// it, or the broker time of its first delivery, so that a replay finds the row of that day. It stays an assumed time.
	HeaderEventTime   = "evenhand-event-time"
	HeaderTraceparent = "traceparent" // W3C trace context
	// HeaderTruncated says that texts of the event were cut before they came, by one who could not send them whole.
	HeaderTruncated = "evenhand-truncated"
)

// Limits bound what one event may hold. Zero means the default of that limit.
type Limits struct {
	Message int // bytes of a message; more is rejected. Default 1 MiB
	Text    int // bytes of a text field; more is cut. Default 256 KiB
	Depth   int // levels of nested JSON; more is rejected. Default 32
}

// DefaultLimits are those of the documentation.
func DefaultLimits() Limits { return Limits{Message: 1 << 20, Text: 256 << 10, Depth: 32} }

// Options of a Decoder.
type Options struct {
	// DefaultTenant is the tenant of events that name none; "" rejects them.
	DefaultTenant string
	// Tenant is that of all events, whatever they say: the log they come from is bound to its credential.
	// An event that names another is rejected. "" binds none.
	Tenant string
	// Domain is that of events that name none; "" is General.
	Domain audit.Domain
	Limits Limits
}

// Validate reports every fault at once under the operator's keys.
func (o Options) Validate() error {
	var errs []error
	if o.DefaultTenant != "" && !ValidTenant(o.DefaultTenant) {
		errs = append(errs, errors.New("tenant.default: "+wantTenant))
	}
	for _, l := range []struct {
		key string
		n   int
	}{{"message_bytes", o.Limits.Message}, {"text_bytes", o.Limits.Text}, {"depth", o.Limits.Depth}} {
		if l.n < 0 {
			errs = append(errs, fmt.Errorf("ingest.%s: %d is below 0", l.key, l.n))
		}
	}
	if o.Limits.Depth > fastjson.MaxDepth {
		errs = append(errs, fmt.Errorf("ingest.depth: %d is above %d", o.Limits.Depth, fastjson.MaxDepth))
	}
	return errors.Join(errs...)
}

// Decoder decodes native events. It is safe for concurrent use.
type Decoder struct {
	defaultTenant string
	boundTenant   string
	domain        audit.Domain
	limits        Limits
	states        sync.Pool
}

// NewDecoder makes a decoder.
func NewDecoder(o Options) *Decoder {
	def := DefaultLimits()
	d := &Decoder{defaultTenant: o.DefaultTenant, boundTenant: o.Tenant, domain: cmp.Or(o.Domain, audit.General), limits: Limits{
		Message: orDefault(o.Limits.Message, def.Message),
		Text:    orDefault(o.Limits.Text, def.Text),
		Depth:   min(orDefault(o.Limits.Depth, def.Depth), fastjson.MaxDepth),
	}}
	d.states.New = func() any { return newState(d) }
	return d
}

// domainOf gives the domain of a name: the decoder's of none, and General of one that is not known.
func (d *Decoder) domainOf(given string) (domain audit.Domain, known bool) {
	switch named := audit.Domain(strings.ToLower(strings.TrimSpace(given))); {
	case named == "":
		return d.domain, true
	case named.Known():
		return named, true
	}
	return audit.General, false
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// Decode gives the interaction of a record, or why there is none. Exactly one of the two is not nil.
func (d *Decoder) Decode(rec sources.Record, o audit.Origin) (*audit.Interaction, *audit.Rejected) {
	st := d.state()
	defer d.release(st, len(rec.Value))
	in := st.decode(rec, o)
	if len(st.faults) == 0 {
		return in, nil
	}
	return nil, &audit.Rejected{
		Origin: o, Tenant: st.tenant, Reason: st.faults[0].Code, Detail: detail(st.faults),
		// Cloned, so that one bad record does not hold the memory of a whole fetch.
		Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value), Header: cloneHeaders(rec.Headers),
	}
}

func cloneHeaders(hs []audit.Header) []audit.Header {
	hs = slices.Clone(hs)
	for i := range hs {
		hs[i].Value = bytes.Clone(hs[i].Value)
	}
	return hs
}

// Check decodes a record and gives every fault instead of a rejection. With only, fields of other
// names are unknown.
func (d *Decoder) Check(rec sources.Record, o audit.Origin, only ...string) (*audit.Interaction, []Fault) {
	st := d.state()
	defer d.release(st, len(rec.Value))
	if len(only) > 0 {
		st.allowed = func(f field) bool { return slices.Contains(only, names[f]) }
	}
	in := st.decode(rec, o)
	if len(st.faults) > 0 {
		return nil, st.faults
	}
	return in, nil
}

// Stamp gives the event in its canonical form with the id put in where it has none. It checks only that value is a
// JSON object.
func (d *Decoder) Stamp(value []byte, id audit.ID) ([]byte, []Fault) {
	return d.stamp(value, "", id)
}

// stamp is Stamp for a message in any format, by a sender whose tenant may be known.
func (d *Decoder) stamp(value []byte, tenant string, id audit.ID) ([]byte, []Fault) {
	st := d.state()
	defer d.release(st, len(value))
	st.tenant = cmp.Or(d.boundTenant, tenant)
	if !st.parseAny(sources.Record{Value: value}, headers{}) {
		return nil, st.faults
	}
	out := make([]byte, 0, len(value)+64)
	noID := st.absent(fID)
	out = append(out, '{')
	if noID {
		out = fmt.Appendf(out, `"id":%q,`, id)
	}
	ms, _ := st.membersOf(st.object, "")
	for _, m := range ms {
		if noID && string(m.key) == names[fID] {
			continue
		}
		out = append(appendString(out, m.key), ':')
		out = append(st.canonical(out, m.value, ""), ',')
	}
	if out[len(out)-1] == ',' {
		out = out[:len(out)-1]
	}
	return append(out, '}'), nil
}

func (d *Decoder) state() *state {
	return d.states.Get().(*state)
}

// release gives a state back unless a large message blew it up.
func (d *Decoder) release(st *state, size int) {
	if st.reset(); size <= 128<<10 {
		d.states.Put(st)
	}
}

const wantTenant = "wants 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"

// ValidTenant tells whether s is a tenant's name: ^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$.
func ValidTenant(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && (c == '_' || c == '.' || c == '-'):
		default:
			return false
		}
	}
	return 0 < len(s) && len(s) <= 64
}

// earliest is the first event time that is taken.
var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	day         = 24 * time.Hour
	suspectSkew = 5 * time.Minute
)

// Package ingest turns messages of the log into interactions: one strict decoder for the native event
// (schemas/events/interaction.v1.json). Its HTTP doors are in package door.
//
// Decode never fails and never panics: a message gives an interaction or a rejection that names every
// field at fault and holds nothing of its text. It decides from the record alone, so a message that is
// read again gives the same ids, times and digest. It costs about 6 µs for an event of 2.6 KB, digest
// included, and keeps no reference to the record's bytes.
package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// Headers of a record that the decoder reads.
const (
	HeaderTenant      = "evenhand-tenant"   // stands above the payload's tenant_id
	HeaderEventID     = "evenhand-event-id" // a UUID for an event without id
	HeaderTraceparent = "traceparent"       // W3C trace context
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
	Limits        Limits
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
	limits        Limits
	states        sync.Pool
}

// NewDecoder makes a decoder.
func NewDecoder(o Options) *Decoder {
	def := DefaultLimits()
	d := &Decoder{defaultTenant: o.DefaultTenant, limits: Limits{
		Message: orDefault(o.Limits.Message, def.Message),
		Text:    orDefault(o.Limits.Text, def.Text),
		Depth:   min(orDefault(o.Limits.Depth, def.Depth), fastjson.MaxDepth),
	}}
	d.states.New = func() any { return newState(d) }
	return d
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
		Key: bytes.Clone(rec.Key), Value: bytes.Clone(rec.Value), Header: rec.Headers,
	}
}

func (d *Decoder) state() *state {
	st := d.states.Get().(*state)
	st.reset()
	return st
}

// release gives a state back unless a large message blew it up.
func (d *Decoder) release(st *state, size int) {
	if size <= 128<<10 {
		d.states.Put(st)
	}
}

// state is what one decoding works with; states are pooled.
type state struct {
	d       *Decoder
	strict  strict
	parser  fastjson.Parser
	values  [fieldCount]*fastjson.Value
	members []member
	scratch []byte // canonical JSON and digests under way
	buf     []byte // texts under way
	faults  []Fault
	tenant  string // as far as known
	query   string // original_query beside messages
	allowed func(field) bool

	collect, push func(key []byte, v *fastjson.Value) // bound once: a closure a call is an allocation
}

func newState(d *Decoder) *state {
	st := &state{d: d}
	st.push = func(key []byte, v *fastjson.Value) { st.members = append(st.members, member{key, v}) }
	st.collect = st.collectField
	return st
}

func (st *state) reset() {
	clear(st.values[:])
	clear(st.members[:cap(st.members)])
	st.members = st.members[:0]
	st.faults = nil
	st.tenant, st.query = "", ""
	st.allowed = nil
}

func (st *state) fault(field, code, message string) {
	if len(st.faults) < maxFaults {
		st.faults = append(st.faults, Fault{field, code, message})
	}
}

// parse fills st.values; on a fault it says false.
func (st *state) parse(b []byte) bool {
	if len(b) > st.d.limits.Message {
		st.fault("", TooLarge, fmt.Sprintf("the event has %d bytes; at most %d are taken", len(b), st.d.limits.Message))
		return false
	}
	switch code, at := st.strict.value(b, st.d.limits.Depth); code {
	case "":
	case InvalidUTF8:
		st.fault("", code, "not UTF-8 at byte "+strconv.Itoa(at))
		return false
	case TooDeep:
		st.fault("", code, "nested deeper than "+strconv.Itoa(st.d.limits.Depth)+" levels at byte "+strconv.Itoa(at))
		return false
	default:
		message := "not one JSON object: fault at byte " + strconv.Itoa(at)
		if len(bytes.TrimSpace(b)) == 0 {
			message = "the message is empty; a JSON object is wanted"
		}
		st.fault("", code, message)
		return false
	}
	if len(st.strict.lone) > 0 {
		b = bytes.Clone(b)
		for _, at := range st.strict.lone {
			copy(b[at:], `\ufffd`)
		}
	}
	v, err := st.parser.ParseBytes(b)
	if err != nil { // strict and fastjson disagree: the text of err quotes the input
		st.fault("", BadJSON, "not one JSON object")
		return false
	}
	o, err := v.Object()
	if err != nil {
		st.fault("", WrongType, "wants a JSON object")
		return false
	}
	o.Visit(st.collect)
	return true
}

func (st *state) collectField(key []byte, v *fastjson.Value) {
	f, ok := byName[string(key)]
	switch {
	case !ok || st.allowed != nil && !st.allowed(f):
		st.fault(shown(key), UnknownField, st.unknown(key))
	case st.values[f] != nil:
		st.fault(names[f], DuplicateKey, "stands twice in the event")
	default:
		st.values[f] = v
	}
}

var tenantForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)

const wantTenant = "wants 1 to 64 letters, digits, '_', '.' or '-', the first a letter or digit"

// ValidTenant tells whether s is a tenant's name.
func ValidTenant(s string) bool { return tenantForm.MatchString(s) }

// Window in which event times are taken.
var earliest = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	day         = 24 * time.Hour
	suspectSkew = 5 * time.Minute
)

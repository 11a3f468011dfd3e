package ingest

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/valyala/fastjson"
)

// state is what one decoding works with; states are pooled.
type state struct {
	d       *Decoder
	strict  strict
	parser  fastjson.Parser
	object  *fastjson.Object
	values  [fieldCount]*fastjson.Value
	members []member
	scratch []byte // canonical JSON and digests under way
	buf     []byte // texts under way
	faults  []Fault
	tenant  string // as far as known
	query   string // original_query beside messages
	packs   bool   // messages or response hold images, sounds or files
	lean    bool   // canonical JSON is written without them
	allowed func(field) bool

	foreign    foreign // the format that names tell of
	looks      int     // names of LiteLLM's
	translated bool    // what is parsed was made here: it is native or at fault

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
	if cap(st.members) > 1024 {
		st.members = nil
	}
	clear(st.members[:cap(st.members)])
	st.members = st.members[:0]
	st.strict.b = nil // a pooled state must not hold a record's bytes
	st.faults = nil
	st.object, st.tenant, st.query = nil, "", ""
	st.packs, st.lean = false, false
	st.allowed = nil
	st.foreign, st.looks, st.translated = native, 0, false
}

func (st *state) fault(field, code, message string) {
	if len(st.faults) < maxFaults {
		st.faults = append(st.faults, Fault{field, code, message})
	}
}

// called is what the message is called in faults.
func (st *state) called() string {
	if st.allowed != nil {
		return "the request"
	}
	return "the event"
}

// Mark may stand before JSON that comes from files: RFC 8259, section 8.1, lets readers pass it over.
var Mark = []byte("\xef\xbb\xbf")

// parse fills st.values; on a fault it says false.
func (st *state) parse(b []byte) bool {
	if len(b) > st.d.limits.Message {
		st.fault("", TooLarge, fmt.Sprintf("%s has %d bytes; at most %d are taken", st.called(), len(b), st.d.limits.Message))
		return false
	}
	v, code, at := st.value(bytes.TrimPrefix(b, Mark))
	switch code {
	case "":
	case InvalidUTF8:
		st.fault("", code, "not UTF-8 at byte "+strconv.Itoa(at))
		return false
	case TooDeep:
		st.fault("", code, "nested deeper than "+strconv.Itoa(st.d.limits.Depth)+" levels at byte "+strconv.Itoa(at))
		return false
	default:
		message := "not one JSON object"
		switch {
		case len(bytes.TrimSpace(b)) == 0:
			message = "the message is empty; a JSON object is wanted"
		case at >= 0:
			message += ": fault at byte " + strconv.Itoa(at)
		}
		st.fault("", code, message)
		return false
	}
	o, err := v.Object()
	if err != nil {
		st.fault("", WrongType, "wants a JSON object")
		return false
	}
	st.object = o
	before := len(st.faults)
	if o.Visit(st.collect); st.foreign != native {
		st.faults = st.faults[:before] // of names before it was known
	}
	return true
}

// value reads one JSON value. The code is "" when all is well; otherwise at is the offset of the fault, or
// below 0 where it is not known. Lone surrogates are read as U+FFFD.
func (st *state) value(b []byte) (v *fastjson.Value, code string, at int) {
	if code, at = st.strict.value(b, st.d.limits.Depth); code != "" {
		return nil, code, at
	}
	if len(st.strict.lone) > 0 {
		b = bytes.Clone(b)
		for _, at := range st.strict.lone {
			copy(b[at:], `\ufffd`)
		}
	}
	v, err := st.parser.ParseBytes(b)
	if err != nil { // strict and fastjson disagree: the text of err quotes the input
		return nil, BadJSON, -1
	}
	return v, "", 0
}

func (st *state) collectField(key []byte, v *fastjson.Value) {
	f, ok := byName[string(key)]
	switch {
	case !ok || st.allowed != nil && !st.allowed(f):
		if !ok && st.notice(key) {
			return
		}
		st.fault(shown(key), UnknownField, st.unknown(key))
	case st.values[f] != nil:
		st.fault(names[f], DuplicateKey, "stands twice in "+st.called())
	default:
		st.values[f] = v
	}
}

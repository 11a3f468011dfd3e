package ingest

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/audit"
)

// Short is a line of texts to scan, {"id": …, "text": "…", "domain": "…"}; other keys are passed over, but for
// those that hold an interaction's texts, and a mistyped domain.
type Short struct {
	ID   string // as it was written, if it is no string
	Text string
	// Domain is as a full interaction's would be.
	Domain audit.Domain
	Given  bool   // there is a text; otherwise the line is something else, perhaps an event
	Fault  *Fault // the text is no string, or a key stands twice, or the domain is none or mistyped, or an interaction's texts stand beside
}

// ReadShort reads a line as a short form. It says nothing about lines that are no JSON objects; Decode does.
func (d *Decoder) ReadShort(line []byte) (s Short) {
	st := d.state()
	defer d.release(st, len(line))
	v, code, _ := st.value(bytes.TrimPrefix(line, Mark)) // as an event's
	if code != "" {
		return s
	}
	o, err := v.Object()
	if err != nil {
		return s
	}
	var id, text, domain *fastjson.Value
	var beside string
	var mistyped *Fault
	o.Visit(func(key []byte, v *fastjson.Value) {
		into := &text
		switch string(key) {
		case "id":
			into = &id
		case "text":
		case "domain":
			into = &domain
		case "prompt", "response", "messages":
			if v.Type() != fastjson.TypeNull && (v.Type() != fastjson.TypeString || len(v.GetStringBytes()) > 0) {
				beside = string(key)
			}
			return
		default:
			if Slip(string(key), names[fDomain]) {
				mistyped = &Fault{shown(key), UnknownField, "did you mean " + names[fDomain] + "? A text of no domain is judged as " + string(d.domain)}
			}
			return
		}
		if *into != nil {
			s.Fault = &Fault{string(key), DuplicateKey, "stands twice in the line"}
		}
		*into = v
	})
	switch {
	case id == nil || id.Type() == fastjson.TypeNull:
	case id.Type() == fastjson.TypeString:
		s.ID = string(id.GetStringBytes())
	default:
		s.ID = id.String()
	}
	if s.Given = text != nil; !s.Given {
		s.Fault = nil
		return s
	}
	switch {
	case s.Fault != nil:
	case text.Type() != fastjson.TypeString:
		s.Fault = &Fault{"text", WrongType, "wants a string"}
	case beside != "":
		s.Fault = &Fault{"text", BadValue, "stands beside " + beside + "; a line has text, or an interaction's fields"}
	}
	if s.Fault == nil && domain == nil {
		s.Fault = mistyped
	}
	s.Text = string(text.GetStringBytes())
	s.domain(domain, d)
	return s
}

// domain reads the domain as that of a full interaction is read.
func (s *Short) domain(v *fastjson.Value, d *Decoder) {
	given := string(v.GetStringBytes()) // "" of null and of none
	s.Domain, _ = d.domainOf(given)
	if v == nil || v.Type() == fastjson.TypeNull {
		return
	}
	switch {
	case s.Fault != nil:
	case v.Type() != fastjson.TypeString:
		s.Fault = &Fault{names[fDomain], WrongType, "wants a string"}
	case utf8.RuneCountInString(given) > maxID:
		s.Fault = &Fault{names[fDomain], BadValue, "wants at most " + strconv.Itoa(maxID) + " characters"}
	}
}

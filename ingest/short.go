package ingest

import "github.com/valyala/fastjson"

// Short is a line of texts to scan, {"id": …, "text": "…"}; other keys are passed over.
type Short struct {
	ID    string // as it was written, if it is no string
	Text  string
	Given bool   // there is a text; otherwise the line is something else, perhaps an event
	Fault *Fault // the text is no string, or a key stands twice
}

// ReadShort reads a line as a short form. It says nothing about lines that are no JSON objects; Decode does.
func (d *Decoder) ReadShort(line []byte) (s Short) {
	st := d.state()
	defer d.release(st, len(line))
	v, code, _ := st.value(line)
	if code != "" {
		return s
	}
	o, err := v.Object()
	if err != nil {
		return s
	}
	var id, text *fastjson.Value
	o.Visit(func(key []byte, v *fastjson.Value) {
		into := &text
		switch string(key) {
		case "id":
			into = &id
		case "text":
		default:
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
	if text.Type() != fastjson.TypeString && s.Fault == nil {
		s.Fault = &Fault{"text", WrongType, "wants a string"}
	}
	s.Text = string(text.GetStringBytes())
	return s
}

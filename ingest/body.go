package ingest

import "strconv"

// CheckJSON tells whether b is one JSON value in UTF-8, nested at most one level deeper than an event
// may be, as an array of events is. The fault has no field.
func CheckJSON(b []byte) *Fault {
	_, fault := readBody(b)
	return fault
}

// Elements cuts a JSON array into its elements without a copy, at most limit of them; all is their
// number. Anything but an array is a fault, which has no field.
func Elements(b []byte, limit int) (items [][]byte, all int, fault *Fault) {
	s, fault := readBody(b)
	if fault != nil {
		return nil, 0, fault
	}
	s.i = 0
	if s.space(); !s.eat('[') {
		return nil, 0, &Fault{Code: WrongType, Message: "wants a JSON array"}
	}
	if s.space(); s.eat(']') {
		return nil, 0, nil
	}
	for more := true; more; more = s.eat(',') {
		s.space()
		from := s.i
		s.any(0) // b is known to be good
		if all++; all <= limit {
			items = append(items, b[from:s.i])
		}
		s.space()
	}
	return items, all, nil
}

func readBody(b []byte) (*strict, *Fault) {
	s := &strict{}
	if code, at := s.value(b, DefaultLimits().Depth+1); code != "" {
		return s, &Fault{Code: code, Message: "fault at byte " + strconv.Itoa(at) + " of the body"}
	}
	return s, nil
}

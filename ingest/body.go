package ingest

import "strconv"

// CheckJSON tells whether b is one JSON value in UTF-8, nested at most one level deeper than an event
// may be, as an array of events is. The fault has no field.
func CheckJSON(b []byte) *Fault {
	_, fault := readBody(b)
	return fault
}

// Members cuts a JSON object of at most so many levels into its members without a copy: the values by the
// names as they are written, without quotes. A name twice is a fault, and so is anything but an object.
func Members(b []byte, levels int) (map[string][]byte, *Fault) {
	s := &strict{}
	if code, at := s.value(b, levels); code != "" {
		return nil, bodyFault(code, at)
	}
	s.i = 0
	if s.space(); !s.eat('{') {
		return nil, &Fault{Code: WrongType, Message: "wants a JSON object"}
	}
	members := map[string][]byte{}
	if s.space(); s.eat('}') {
		return members, nil
	}
	for more := true; more; more = s.eat(',') {
		s.space()
		from := s.i + 1
		s.any(0) // b is known to be good
		name := string(b[from : s.i-1])
		s.space()
		s.eat(':')
		s.space()
		if _, twice := members[name]; twice {
			return nil, bodyFault(DuplicateKey, from)
		}
		from = s.i
		s.any(0)
		members[name] = b[from:s.i]
		s.space()
	}
	return members, nil
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
		return s, bodyFault(code, at)
	}
	return s, nil
}

func bodyFault(code string, at int) *Fault {
	return &Fault{Code: code, Message: "fault at byte " + strconv.Itoa(at) + " of the body"}
}

package client

import "bytes"

// sse reads a stream of server-sent events as its bytes come. Lines end in \n, \r\n or \r.
type sse struct {
	max  int // bytes of one event's data; more is cut and told as too large
	line []byte
	data []byte
	some bool // the event has data
	big  bool
	cr   bool // the last byte was \r: a \n that follows belongs to it
	old  bool // a line was read: a byte order mark may stand before the first only
}

// write reads p and calls on for each event that ends in it: with its data, which on must not keep, whether that was
// too large, and with how many bytes of p it ends. Comments and events without data are not told.
func (s *sse) write(p []byte, on func(data []byte, big bool, end int)) {
	for at := 0; at < len(p); {
		if s.cr {
			s.cr = false
			if p[at] == '\n' {
				at++
				continue
			}
		}
		n := bytes.IndexAny(p[at:], "\r\n")
		if n < 0 {
			s.add(p[at:])
			return
		}
		s.add(p[at : at+n])
		s.cr = p[at+n] == '\r'
		at += n + 1
		end := at
		if s.cr && end < len(p) && p[end] == '\n' {
			end++
		}
		s.endLine(func(data []byte, big bool) { on(data, big, end) })
	}
}

// add appends to the line; what is beyond the limit is not kept.
func (s *sse) add(b []byte) {
	if len(s.line)+len(b) > s.max+len("data: ") {
		s.big = true
		b = b[:max(0, s.max+len("data: ")-len(s.line))]
	}
	s.line = append(s.line, b...)
}

func (s *sse) endLine(on func(data []byte, big bool)) {
	line := s.line
	s.line = s.line[:0]
	if !s.old {
		s.old = true
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	if len(line) == 0 {
		if s.some || s.big {
			on(s.data, s.big)
		}
		s.data, s.some, s.big = s.data[:0], false, false
		return
	}
	name, value, _ := bytes.Cut(line, []byte(":"))
	if string(name) != "data" {
		return
	}
	if s.some {
		s.data = append(s.data, '\n')
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	if len(s.data)+len(value) > s.max {
		s.big, value = true, nil
	}
	s.data, s.some = append(s.data, value...), true
}

// end tells an event that lacks its blank line: some providers leave it out at the end.
func (s *sse) end(on func(data []byte, big bool)) {
	if len(s.line) > 0 {
		s.endLine(on)
	}
	if s.some || s.big {
		s.endLine(on)
	}
}

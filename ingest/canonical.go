package ingest

import (
	"bytes"
	"slices"

	"github.com/valyala/fastjson"

	"github.com/evenhand/evenhand/ingest/call"
)

// member is one entry of an object under way.
type member struct {
	key   []byte
	value *fastjson.Value
}

// canonical appends v in the one form that equal values share: no white space, the members of
// objects sorted by the bytes of their names, strings with the fewest escapes, numbers as they were
// written; st.packs tells that images, sounds or files are among them, and where st.lean is set, they are named only. An object with a name twice is reported under the name of the top-level field.
func (st *state) canonical(dst []byte, v *fastjson.Value, field string) []byte {
	switch v.Type() {
	case fastjson.TypeObject:
		o, _ := v.Object()
		ms, base := st.membersOf(o, field)
		dst = append(dst, '{')
		for i, m := range ms {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, m.key), ':')
			held := packed(m.key, m.value)
			st.packs = st.packs || held
			if held && st.lean {
				dst = appendString(dst, []byte(call.LeftOut(m.value.GetStringBytes())))
				continue
			}
			dst = st.canonical(dst, m.value, field)
		}
		st.members = st.members[:base]
		return append(dst, '}')
	case fastjson.TypeArray:
		dst = append(dst, '[')
		items, _ := v.Array()
		for i, item := range items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = st.canonical(dst, item, field)
		}
		return append(dst, ']')
	case fastjson.TypeString:
		s, _ := v.StringBytes()
		return appendString(dst, s)
	}
	return v.MarshalTo(dst) // numbers as written, true, false, null
}

// membersOf gives an object's members sorted by name; they lie on the stack st.members from base on.
func (st *state) membersOf(o *fastjson.Object, field string) (ms []member, base int) {
	base = len(st.members)
	o.Visit(st.push)
	ms = st.members[base:]
	slices.SortFunc(ms, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	for i := 1; i < len(ms); i++ {
		if bytes.Equal(ms[i-1].key, ms[i].key) {
			st.fault(field, DuplicateKey, "holds an object that has a name twice") // names down here are the sender's: texts, people
			break
		}
	}
	return ms, base
}

// appendString appends s as a JSON string with the fewest escapes.
func appendString(dst, s []byte) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for {
		n := plain(s)
		dst = append(dst, s[:n]...)
		if n == len(s) {
			return append(dst, '"')
		}
		switch c := s[n]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, `\b`...)
		case '\f':
			dst = append(dst, `\f`...)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		s = s[n+1:]
	}
}

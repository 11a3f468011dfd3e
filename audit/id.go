package audit

import (
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"
)

// ID is a UUID (RFC 9562) in its 16-byte form.
type ID [16]byte

var errNotUUID = errors.New("not a UUID (want 8-4-4-4-12 hexadecimal digits)")

// ParseID reads the canonical 36-character form or 32 hexadecimal digits, in either case.
func ParseID(s string) (ID, error) {
	var id ID
	var b [32]byte
	switch len(s) {
	case 36:
		if s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return id, errNotUUID
		}
		n := copy(b[:], s[:8])
		n += copy(b[n:], s[9:13])
		n += copy(b[n:], s[14:18])
		n += copy(b[n:], s[19:23])
		copy(b[n:], s[24:])
	case 32:
		copy(b[:], s)
	default:
		return id, errNotUUID
	}
	if _, err := hex.Decode(id[:], b[:]); err != nil {
		return ID{}, errNotUUID
	}
	return id, nil
}

// String gives the canonical lower-case form.
func (id ID) String() string {
	var b [36]byte
	hex.Encode(b[:8], id[:4])
	b[8] = '-'
	hex.Encode(b[9:13], id[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], id[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], id[8:10])
	b[23] = '-'
	hex.Encode(b[24:], id[10:])
	return string(b[:])
}

// MarshalText gives the canonical form, so that JSON holds a string.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText is ParseID.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}

// IsZero tells whether the ID is unset.
func (id ID) IsZero() bool { return id == ID{} }

// Time gives the creation time of a version 7 UUID; ok is false for other versions.
func (id ID) Time() (t time.Time, ok bool) {
	if id[6]>>4 != 7 || id[8]>>6 != 2 {
		return time.Time{}, false
	}
	ms := int64(binary.BigEndian.Uint64(append([]byte{0, 0}, id[:6]...)))
	return time.UnixMilli(ms).UTC(), true
}

// NewID makes a version 7 UUID for the given time.
func NewID(t time.Time) ID {
	var id ID
	_, _ = rand.Read(id[6:]) // never fails: crypto/rand ends the program instead
	ms := uint64(t.UnixMilli())
	id[0], id[1], id[2], id[3], id[4], id[5] = byte(ms>>40), byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms)
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}

// EventID gives the id of the event that a tenant's producer calls name. A UUID is the id itself; from any other
// name it is derived, and given is that name.
func EventID(tenant, name string) (id ID, given string) {
	if id, err := ParseID(name); err == nil {
		return id, ""
	}
	return DeriveID(tenant, name), name
}

// namespace is Evenhand's own UUID namespace for derived (version 5) IDs; it never changes.
var namespace = ID{0x3b, 0x1c, 0x5e, 0x0a, 0x6d, 0x5f, 0x4e, 0x0b, 0x9c, 0x1d, 0x65, 0x76, 0x65, 0x6e, 0x68, 0x64}

// DeriveID makes a version 5 UUID from parts. Parts are length-prefixed, so ("a","bc") and
// ("ab","c") differ.
func DeriveID(parts ...string) ID {
	h := sha1.New()
	h.Write(namespace[:])
	var n [4]byte
	for _, p := range parts {
		binary.BigEndian.PutUint32(n[:], uint32(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var id ID
	copy(id[:], h.Sum(nil))
	id[6] = 0x50 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	return id
}

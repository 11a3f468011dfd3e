package client

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// A segment of the spool is a file: the magic, then records. A record is the length of its payload and the payload's
// CRC-32C, both 4 bytes little-endian, and the payload: id and tenant, each behind its length as a varint, and the event.

const (
	magic      = "EVHSPL1\n"
	recordHead = 8
	maxRecord  = 64 << 20 // more is no record of ours
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)

	errTorn    = errors.New("the segment ends within a record") // as a process leaves it that is killed while it writes
	errDamaged = errors.New("the segment is damaged")
)

// appendRecord adds the record of an event.
func appendRecord(b []byte, e Encoded) []byte {
	at := len(b)
	b = append(b, make([]byte, recordHead)...)
	b = append(binary.AppendUvarint(b, uint64(len(e.ID))), e.ID...)
	b = append(binary.AppendUvarint(b, uint64(len(e.Tenant))), e.Tenant...)
	b = append(b, e.JSON...)
	payload := b[at+recordHead:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// readSegment gives the events of a segment up to its end, or to where it is torn or damaged, which is the error.
// They lie in b.
func readSegment(b []byte) (es []Encoded, err error) {
	switch {
	case len(b) < len(magic) && magic[:len(b)] == string(b):
		return nil, errTorn
	case len(b) < len(magic) || string(b[:len(magic)]) != magic:
		return nil, errDamaged
	}
	for b = b[len(magic):]; len(b) > 0; {
		if len(b) < recordHead {
			return es, errTorn
		}
		n, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
		switch {
		case n > maxRecord:
			return es, errDamaged
		case uint64(n) > uint64(len(b)-recordHead):
			return es, errTorn
		}
		payload := b[recordHead : recordHead+n]
		if crc32.Checksum(payload, castagnoli) != sum {
			return es, errDamaged
		}
		e, ok := readRecord(payload)
		if !ok {
			return es, errDamaged
		}
		es, b = append(es, e), b[recordHead+n:]
	}
	return es, nil
}

func readRecord(b []byte) (e Encoded, ok bool) {
	for _, to := range []*string{&e.ID, &e.Tenant} {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return e, false
		}
		*to, b = string(b[used:used+int(n)]), b[used+int(n):]
	}
	e.JSON = b
	return e, true
}

package kafka

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// errMalformed says that bytes do not follow Kafka's formats.
var errMalformed = errors.New("malformed")

// decoder reads big-endian fields and zigzag variable-length integers off a slice. After the first
// field that does not fit, err is set and everything reads as zero.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) take(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.b, d.err = nil, errMalformed
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}

func (d *decoder) int16() int16 {
	if v := d.take(2); v != nil {
		return int16(binary.BigEndian.Uint16(v))
	}
	return 0
}

func (d *decoder) int32() int32 {
	if v := d.take(4); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (d *decoder) int64() int64 {
	if v := d.take(8); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.b, d.err = nil, errMalformed
		return 0
	}
	d.b = d.b[n:]
	return v
}

// varbytes reads a length and so many bytes; a length of -1 is nil, 0 is empty but not nil.
func (d *decoder) varbytes() []byte {
	n := d.varint()
	if n == -1 || d.err != nil {
		return nil
	}
	if n < 0 || n > int64(len(d.b)) {
		d.b, d.err = nil, errMalformed
		return nil
	}
	if n == 0 {
		return []byte{}
	}
	return d.take(int(n))
}

// decodeFetched reads a fetch response of version 4 to 11 for one topic and one partition.
func decodeFetched(body []byte, version int16) (*fetched, error) {
	d := decoder{b: body}
	d.int32() // correlation id
	d.int32() // throttle time: the broker delays the answer itself
	var code int16
	if version >= 7 {
		code = d.int16()
		d.int32() // session id
	}
	if topics := d.int32(); d.err == nil && topics < 1 {
		if code != 0 {
			return &fetched{code: code}, nil
		}
		return nil, errors.New("the broker's answer lacks the topic")
	}
	d.take(int(d.int16())) // topic
	if partitions := d.int32(); d.err == nil && partitions < 1 {
		return nil, errors.New("the broker's answer lacks the partition")
	}
	d.int32() // partition
	f := &fetched{code: d.int16()}
	if f.code == 0 {
		f.code = code
	}
	f.end = d.int64()
	d.int64() // last stable offset
	if version >= 5 {
		d.int64() // log start offset
	}
	for n := d.int32(); n > 0 && d.err == nil; n-- {
		f.aborted = append(f.aborted, abortedTxn{producer: d.int64(), first: d.int64()})
	}
	if version >= 11 {
		d.int32() // preferred read replica
	}
	if n := d.int32(); n > 0 {
		f.records = d.take(int(n))
	}
	return f, d.err
}

// batch is the header of a record batch, format 2, and its payload.
type batch struct {
	base, last   int64 // offsets
	maxTimestamp int64 // milliseconds; with LogAppendTime the time of the append
	attributes   int16
	producer     int64
	count        int32
	payload      []byte // records, compressed as the attributes say
	sum          uint32
	checked      []byte // what sum is of
}

const (
	batchHead     = 61 // bytes before the payload
	codecMask     = 0x07
	transactional = 0x10
	control       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// nextBatch cuts the first batch off b. ok is false when b holds no whole one: brokers cut the last
// batch of an answer anywhere.
func nextBatch(b []byte) (first batch, rest []byte, ok bool, err error) {
	if len(b) < batchHead {
		return batch{}, nil, false, nil
	}
	size := int64(int32(binary.BigEndian.Uint32(b[8:]))) + 12
	if size < batchHead {
		return batch{}, nil, false, errMalformed
	}
	if size > int64(len(b)) {
		return batch{}, nil, false, nil
	}
	if b[16] != 2 {
		return batch{}, nil, false, errors.New("record batches of a format older than Kafka 0.11")
	}
	h := decoder{b: b[:size]}
	first.base = h.int64()
	h.take(9) // length, leader epoch, magic
	first.sum = uint32(h.int32())
	first.checked = h.b
	first.attributes = h.int16()
	first.last = first.base + int64(h.int32())
	h.int64() // first timestamp
	first.maxTimestamp = h.int64()
	first.producer = h.int64()
	h.take(6) // producer epoch, base sequence
	first.count = h.int32()
	first.payload = h.b
	if first.last < first.base || first.base < 0 || first.count < 0 {
		return batch{}, nil, false, errMalformed
	}
	return first, b[size:], true, h.err
}

func (b *batch) intact() bool { return crc32.Checksum(b.checked, castagnoli) == b.sum }

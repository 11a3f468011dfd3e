package kafka

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/evenhand/evenhand/sources"
)

// encode makes a batch as a broker stores it: with its base offset and its own time.
func encode(t testing.TB, base int64, attributes protocol.Attributes, producer int64, records ...kafka.Record) []byte {
	t.Helper()
	var out bytes.Buffer
	set := protocol.RecordSet{Version: 2, Attributes: attributes, Records: kafka.NewRecordReader(records...)}
	if _, err := set.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	b := out.Bytes()[4:]
	binary.BigEndian.PutUint64(b, uint64(base))
	binary.BigEndian.PutUint64(b[35:], uint64(brokerTime.UnixMilli()))
	binary.BigEndian.PutUint64(b[43:], uint64(producer))
	return seal(b)
}

// seal sets the checksum right.
func seal(b []byte) []byte {
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
	return b
}

var brokerTime = time.Date(2026, 11, 21, 10, 0, 0, 123e6, time.UTC)

func rec(value string, headers ...string) kafka.Record {
	r := kafka.Record{Time: time.Unix(1e9, 0), Key: kafka.NewBytes([]byte("k")), Value: kafka.NewBytes([]byte(value))}
	for _, h := range headers {
		r.Headers = append(r.Headers, kafka.Header{Key: h, Value: []byte("1")})
	}
	return r
}

func show(c sources.Chunk) string {
	var out []string
	for _, r := range c.Records {
		s := fmt.Sprintf("%d=%s", r.Offset, r.Value)
		for _, h := range r.Headers {
			if h.Key == UndecodableHeader {
				s = fmt.Sprintf("%d!", r.Offset)
			}
		}
		out = append(out, s)
	}
	return fmt.Sprintf("%s [%d,%d)", strings.Join(out, " "), c.From, c.Next)
}

func TestDecodeChunk(t *testing.T) {
	const txn, ctl = protocol.Transactional, protocol.Transactional | protocol.Control
	three := encode(t, 10, 0, -1, rec("a"), rec("b"), rec("c"))
	more := encode(t, 13, 0, -1, rec("d"))
	wrong := bytes.Clone(three)
	wrong[len(wrong)-3]++
	lying := bytes.Clone(three)
	binary.BigEndian.PutUint32(lying[57:], 1<<30) // the number of records
	huge := encode(t, 10, protocol.Gzip, -1, rec(strings.Repeat(" ", maxInflated+1)))
	join := func(bs ...[]byte) []byte { return bytes.Join(bs, nil) }
	for _, tc := range []struct {
		name    string
		records []byte
		aborted []abortedTxn
		from    int64
		want    string
		err     string
	}{
		{"nothing", nil, nil, 10, " [10,10)", ""},
		{"all", three, nil, 10, "10=a 11=b 12=c [10,13)", ""},
		{"from inside a batch", three, nil, 11, "11=b 12=c [11,13)", ""},
		{"two batches", join(three, more), nil, 10, "10=a 11=b 12=c 13=d [10,14)", ""},
		{"a batch before the asked offset", join(three, more), nil, 13, "13=d [13,14)", ""},
		{"a cut tail", join(three, more[:len(more)-1]), nil, 10, "10=a 11=b 12=c [10,13)", ""},
		{"a cut header", join(three, more[:20]), nil, 10, "10=a 11=b 12=c [10,13)", ""},
		{"gzip", encode(t, 5, protocol.Gzip, -1, rec("a"), rec("b")), nil, 5, "5=a 6=b [5,7)", ""},
		{"snappy", encode(t, 5, protocol.Snappy, -1, rec("a"), rec("b")), nil, 5, "5=a 6=b [5,7)", ""},
		{"lz4", encode(t, 5, protocol.Lz4, -1, rec("a"), rec("b")), nil, 5, "5=a 6=b [5,7)", ""},
		{"zstd", encode(t, 5, protocol.Zstd, -1, rec("a"), rec("b")), nil, 5, "5=a 6=b [5,7)", ""},
		{"a tick is a hole", encode(t, 5, 0, -1, rec("a"), rec("", TickHeader), rec("b")), nil, 5, "5=a 7=b [5,8)", ""},
		{"only a tick", encode(t, 5, 0, -1, rec("", TickHeader)), nil, 5, " [5,6)", ""},
		{"a control batch is a hole", join(three, encode(t, 13, ctl, 7, rec(""))), nil, 10, "10=a 11=b 12=c [10,14)", ""},
		{"an aborted transaction is a hole", join(encode(t, 10, txn, 7, rec("x")), encode(t, 11, txn, 8, rec("kept")), encode(t, 12, ctl, 7, rec("")), encode(t, 13, txn, 7, rec("later"))),
			[]abortedTxn{{7, 10}}, 10, "11=kept 13=later [10,14)", ""},
		{"two aborted in any order", join(encode(t, 10, txn, 7, rec("x")), encode(t, 11, txn, 8, rec("y"))), []abortedTxn{{8, 11}, {7, 10}}, 10, " [10,12)", ""},
		{"a wrong checksum", join(wrong, more), nil, 10, "10! [10,13)", "checksum"},
		{"a wrong checksum after good ones", join(encode(t, 9, 0, -1, rec("z")), wrong), nil, 9, "9=z 10! [9,13)", "checksum"},
		{"a count that lies", seal(lying), nil, 11, "11! [11,13)", "malformed"},
		{"unknown compression", encode(t, 5, 0, -1, rec("a")), nil, 5, "5=a [5,6)", ""},
		{"a bomb", huge, nil, 10, "10! [10,11)", "128 MiB"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := decodeChunk(&fetched{records: tc.records, aborted: tc.aborted}, 0, tc.from)
			if got := show(c); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
			for _, r := range c.Records {
				if !r.Time.Equal(brokerTime) || r.Time.Location() != time.UTC {
					t.Errorf("time %v, want the broker's %v", r.Time, brokerTime)
				}
			}
		})
	}
}

func TestUnknownCompression(t *testing.T) {
	b := encode(t, 5, 0, -1, rec("a"))
	b[22] |= 7
	c, err := decodeChunk(&fetched{records: seal(b)}, 0, 5)
	if got := show(c); got != "5! [5,6)" || err == nil {
		t.Fatalf("%s %v", got, err)
	}
}

func TestNilAndEmptyBytesDiffer(t *testing.T) {
	c, err := decodeChunk(&fetched{records: encode(t, 0, 0, -1, kafka.Record{Value: kafka.NewBytes([]byte{}), Headers: []kafka.Header{{Key: "h", Value: nil}}})}, 0, 0)
	if err != nil || len(c.Records) != 1 {
		t.Fatal(c, err)
	}
	if r := c.Records[0]; r.Key != nil || r.Value == nil || r.Headers[0].Key != "h" {
		t.Fatalf("%+v", r)
	}
}

// response is what a broker of a version answers.
func response(version int16, code int16, records []byte) []byte {
	var b []byte
	i16 := func(v int16) { b = binary.BigEndian.AppendUint16(b, uint16(v)) }
	i32 := func(v int) { b = binary.BigEndian.AppendUint32(b, uint32(v)) }
	i64 := func(v int64) { b = binary.BigEndian.AppendUint64(b, uint64(v)) }
	i32(1)
	i32(0)
	if version >= 7 {
		i16(0)
		i32(0)
	}
	i32(1)
	i16(5)
	b = append(b, "topic"...)
	i32(1)
	i32(3)
	i16(code)
	i64(100)
	i64(99)
	if version >= 5 {
		i64(1)
	}
	i32(1) // aborted transactions
	i64(7)
	i64(42)
	if version >= 11 {
		i32(-1)
	}
	i32(len(records))
	return append(b, records...)
}

func TestDecodeFetched(t *testing.T) {
	for version := int16(minFetchVersion); version <= maxFetchVersion; version++ {
		body := response(version, 0, []byte("records"))
		f, err := decodeFetched(body, version)
		if err != nil || string(f.records) != "records" || len(f.aborted) != 1 || f.aborted[0] != (abortedTxn{7, 42}) {
			t.Errorf("version %d: %+v %v", version, f, err)
		}
		for cut := range len(body) {
			if _, err := decodeFetched(body[:cut], version); err == nil {
				t.Errorf("version %d cut at %d of %d is taken", version, cut, len(body))
			}
		}
		if f, err := decodeFetched(response(version, 1, nil), version); err != nil || kafka.Error(f.code) != kafka.OffsetOutOfRange {
			t.Errorf("version %d: code %v %v", version, f, err)
		}
	}
}

func FuzzDecodeChunk(f *testing.F) {
	f.Add(encode(f, 10, 0, -1, rec("a", "h"), rec("b")), int64(11))
	f.Add(encode(f, 10, protocol.Lz4, -1, rec("a"), rec("b")), int64(10))
	f.Add(encode(f, 10, protocol.Transactional|protocol.Control, 1, rec("a")), int64(10))
	f.Fuzz(func(t *testing.T, b []byte, from int64) {
		if len(b) >= batchHead { // most inputs should get past the checksum
			seal(b)
		}
		c, _ := decodeChunk(&fetched{records: b}, 0, from)
		if c.Next < c.From {
			t.Fatalf("the chunk goes backwards: [%d,%d)", c.From, c.Next)
		}
		for i, r := range c.Records {
			if r.Offset < c.From || r.Offset >= c.Next || i > 0 && r.Offset <= c.Records[i-1].Offset {
				t.Fatalf("record %d has offset %d in [%d,%d)", i, r.Offset, c.From, c.Next)
			}
		}
	})
}

func FuzzDecodeFetched(f *testing.F) {
	f.Add(response(11, 0, []byte("records")), int16(11))
	f.Add(response(4, 0, nil), int16(4))
	f.Fuzz(func(t *testing.T, body []byte, version int16) {
		_, _ = decodeFetched(body, version)
	})
}

func BenchmarkDecodeChunk(b *testing.B) {
	records := make([]kafka.Record, 480)
	for i := range records {
		records[i] = rec(strings.Repeat("x", 2000))
	}
	for _, codec := range []protocol.Attributes{0, protocol.Lz4} {
		raw := encode(b, 0, codec, -1, records...)
		b.Run(codec.String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(480 * 2000)
			for b.Loop() {
				if _, err := decodeChunk(&fetched{records: raw}, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
		for i := range records {
			records[i] = rec(strings.Repeat("x", 2000))
		}
	}
}

// An answer of thousands of small batches, as many producers leave behind, costs memory in proportion
// to its records.
func TestManySmallBatches(t *testing.T) {
	const n = 5000
	var all []byte
	for i := range n {
		all = append(all, encode(t, int64(i), 0, -1, rec("value"))...)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := decodeChunk(&fetched{records: all, end: n}, 0, 0)
	runtime.ReadMemStats(&after)
	if err != nil || len(c.Records) != n || c.Next != n || c.End != n {
		t.Fatalf("%d records up to %d of %d, %v", len(c.Records), c.Next, c.End, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1000*n {
		t.Errorf("%d bytes were allocated for %d records", took, n)
	}
}

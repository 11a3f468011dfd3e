package broker

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// encoded is a record batch as a producer sends it.
func encoded(t *testing.T, attributes protocol.Attributes) []byte {
	t.Helper()
	var out bytes.Buffer
	set := protocol.RecordSet{Version: 2, Attributes: attributes, Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte("value"))})}
	if _, err := set.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()[4:] // after the set's length
}

func TestStamp(t *testing.T) {
	const logAppendTime = 0x08
	for _, tc := range []struct {
		name       string
		attributes protocol.Attributes
		damage     func([]byte)
		stamped    bool
	}{
		{"plain", 0, func([]byte) {}, true},
		{"compressed", protocol.Lz4, func([]byte) {}, true},
		{"the producer claims LogAppendTime", logAppendTime, func([]byte) {}, true},
		{"wrong checksum", 0, func(b []byte) { b[len(b)-1]++ }, false},
		{"old format", 0, func(b []byte) { b[16] = 1 }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := encoded(t, tc.attributes)
			tc.damage(b)
			was := bytes.Clone(b)
			stamp(&kmsg.ProduceRequest{Topics: []kmsg.ProduceRequestTopic{{Partitions: []kmsg.ProduceRequestTopicPartition{{Records: b}}}}}, 1_700_000_000_123)
			if !tc.stamped {
				if !bytes.Equal(b, was) {
					t.Fatal("a batch for the broker to refuse was changed")
				}
				return
			}
			first, most := binary.BigEndian.Uint64(b[27:]), binary.BigEndian.Uint64(b[35:])
			if first != 1_700_000_000_123 || most != first || b[22]&logAppendTime != 0 {
				t.Fatalf("times %d and %d, attributes %x", first, most, b[22])
			}
			if crc32.Checksum(b[21:], castagnoli) != binary.BigEndian.Uint32(b[17:]) {
				t.Fatal("the checksum is wrong")
			}
			if !bytes.Equal(b[43:], was[43:]) {
				t.Fatal("more than the times was changed")
			}
		})
	}
	short := &kmsg.ProduceRequest{Topics: []kmsg.ProduceRequestTopic{{Partitions: []kmsg.ProduceRequestTopicPartition{{Records: []byte{1, 2}}, {}}}}}
	stamp(short, 1) // must not fall over
}

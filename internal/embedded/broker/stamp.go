package broker

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/twmb/franz-go/pkg/kmsg"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// stamp puts the broker's time into every batch of the request, as first and as greatest timestamp,
// and clears the bit that says LogAppendTime: kfake would take that bit from any producer, set the
// times itself and keep the old checksum, which makes the batch unreadable and cuts the log there
// when it is opened again. Batches that are not whole are left for kfake to refuse.
func stamp(req *kmsg.ProduceRequest, now int64) {
	const logAppendTime = 0x08
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			b := req.Topics[i].Partitions[j].Records
			if len(b) < 61 || b[16] != 2 || crc32.Checksum(b[21:], castagnoli) != binary.BigEndian.Uint32(b[17:]) {
				continue
			}
			b[22] &^= logAppendTime
			binary.BigEndian.PutUint64(b[27:], uint64(now))
			binary.BigEndian.PutUint64(b[35:], uint64(now))
			binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli))
		}
	}
}

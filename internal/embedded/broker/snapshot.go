package broker

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// snapshot is kfake's own summary of a partition (format version 1). kfake writes it when it is
// closed in order. After a kill it has none that fits and then holds the whole log in memory at once
// to rebuild one; with a fitting snapshot it reads segment by segment. So mendSnapshots writes the
// missing ones first.
type snapshot struct {
	Version          int       `json:"version"`
	HighWatermark    int64     `json:"high_watermark"`
	LastStableOffset int64     `json:"last_stable_offset"`
	LogStartOffset   int64     `json:"log_start_offset"`
	Epoch            int32     `json:"epoch"`
	MaxTimestamp     int64     `json:"max_timestamp"`
	CreatedAt        time.Time `json:"created_at"`
	Segments         []segment `json:"segments"`
}

type segment struct {
	Base     int64 `json:"base_offset"`
	Size     int64 `json:"size"`
	MinEpoch int32 `json:"min_epoch,omitempty"`
	MaxEpoch int32 `json:"max_epoch,omitempty"`
}

// errTransactional says that a log holds transactions, whose state only kfake's slow way rebuilds.
var errTransactional = errors.New("the log holds transactions")

// mendSnapshots writes a snapshot for each partition under dir that has none that fits its segments,
// and cuts a batch off that a kill left half written. Partitions that it cannot handle are left to
// kfake; the errors say which.
func mendSnapshots(dir string) error {
	parts, err := os.ReadDir(filepath.Join(dir, "partitions"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, p := range parts {
		if err := mendSnapshot(filepath.Join(dir, "partitions", p.Name())); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.Name(), err))
		}
	}
	return errors.Join(errs...)
}

func mendSnapshot(dir string) error {
	segments, err := listSegments(dir)
	if err != nil || len(segments) == 0 {
		return err
	}
	path := filepath.Join(dir, "snapshot.json")
	var old snapshot
	if raw, err := os.ReadFile(path); err == nil && json.Unmarshal(raw, &old) == nil && old.fits(segments) {
		return nil
	}
	s := snapshot{Version: 1, HighWatermark: -1, LogStartOffset: -1}
	for i, seg := range segments {
		if err := s.add(dir, seg, i == len(segments)-1); err != nil {
			return err
		}
	}
	if s.HighWatermark < 0 { // not one whole batch
		return nil
	}
	if old.LogStartOffset > s.LogStartOffset && old.LogStartOffset < s.HighWatermark {
		s.LogStartOffset = old.LogStartOffset
	}
	s.LastStableOffset = s.HighWatermark
	raw, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", raw, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

func (s *snapshot) fits(segments []segment) bool {
	return slices.EqualFunc(s.Segments, segments, func(a, b segment) bool { return a.Base == b.Base && a.Size == b.Size })
}

func listSegments(dir string) ([]segment, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []segment
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".dat")
		base, err := strconv.ParseInt(name, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return nil, err
		}
		out = append(out, segment{Base: base, Size: info.Size()})
	}
	slices.SortFunc(out, func(a, b segment) int { return int(min(max(a.Base-b.Base, -1), 1)) })
	return out, nil
}

// add reads the batch headers of a segment. The last segment's batches are checked whole, and what
// follows the last good one is cut off.
func (s *snapshot) add(dir string, seg segment, last bool) error {
	f, err := os.OpenFile(filepath.Join(dir, strconv.FormatInt(seg.Base, 10)+".dat"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var head [61]byte
	pos, first := int64(0), true
	for pos+int64(len(head)) <= seg.Size {
		if _, err := f.ReadAt(head[:], pos); err != nil {
			return err
		}
		size := 12 + int64(int32(binary.BigEndian.Uint32(head[8:])))
		if size < int64(len(head)) || pos+size > seg.Size {
			break
		}
		if last && !intact(f, pos, size, binary.BigEndian.Uint32(head[17:])) {
			break
		}
		if attributes := binary.BigEndian.Uint16(head[21:]); attributes&0x30 != 0 {
			return errTransactional
		}
		base, epoch := int64(binary.BigEndian.Uint64(head[:])), int32(binary.BigEndian.Uint32(head[12:]))
		if s.LogStartOffset < 0 {
			s.LogStartOffset, s.CreatedAt = base, time.UnixMilli(int64(binary.BigEndian.Uint64(head[27:]))).UTC()
		}
		if first {
			seg.MinEpoch, first = epoch, false
		}
		seg.MaxEpoch, s.Epoch = max(seg.MaxEpoch, epoch), epoch
		s.HighWatermark = base + int64(int32(binary.BigEndian.Uint32(head[23:]))) + 1
		s.MaxTimestamp = max(s.MaxTimestamp, int64(binary.BigEndian.Uint64(head[35:])))
		pos += size
	}
	if pos < seg.Size {
		if !last {
			return fmt.Errorf("segment %d is damaged at byte %d", seg.Base, pos)
		}
		if err := f.Truncate(pos); err != nil {
			return err
		}
		seg.Size = pos
	}
	s.Segments = append(s.Segments, seg)
	return nil
}

// intact checks a batch's checksum, which covers all from its 21st byte on.
func intact(f io.ReaderAt, pos, size int64, want uint32) bool {
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, io.NewSectionReader(f, pos+21, size-21))
	return err == nil && n == size-21 && sum.Sum32() == want
}

// Package file is a store of record in one file of JSON lines, for tests and for work without a
// server: a line is a batch, its rows and its markers together, flushed to disk before Send returns.
//
// It keeps the same contract as package clickhouse (see sinktest): the first delivery of an event and
// content wins, writing a range again changes nothing, and a line that a crash cut short was never
// there. Everything is held in memory too, so it is for thousands of interactions, not millions; it
// answers no queries. The file holds people's texts. One process opens it at a time.
package file

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// Store implements [sinks.Store]. It is safe for concurrent use.
type Store struct {
	mu       sync.Mutex
	f        *os.File
	records  map[audit.ID]audit.Record // by result id: tenant, event and content
	rejected map[place]audit.Rejected
	markers  map[span]sinks.Marker
}

type place struct {
	topic     string
	epoch     int32
	partition int
	offset    int64
}

type span struct {
	place
	hi int64
}

var _ sinks.Store = (*Store)(nil)

// Open reads the file, or makes it, and cuts off a last line that was not finished. A file that
// another process holds, or that is not ours, is of KindInvalid.
func Open(path string) (*Store, error) {
	const op = "sinks/file: open"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	s := &Store{f: f, records: map[audit.ID]audit.Record{}, rejected: map[place]audit.Rejected{}, markers: map[span]sinks.Marker{}}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(audit.E(op, audit.KindInvalid, fmt.Errorf("%s is in use by another process", path)), f.Close())
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(audit.E(op, audit.KindInvalid, err), f.Close())
	}
	return s, nil
}

func (s *Store) load() error {
	r := bufio.NewReaderSize(s.f, 1<<20)
	var whole int64
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break // a line without its end was never acknowledged
		}
		if err != nil {
			return err
		}
		var b sinks.Batch
		if err := json.Unmarshal(line, &b); err != nil {
			return fmt.Errorf("line %d is not a batch", n) // its text is not for an error
		}
		s.keep(&b)
		whole += int64(len(line))
	}
	if err := s.f.Truncate(whole); err != nil {
		return err
	}
	_, err := s.f.Seek(whole, io.SeekStart)
	return err
}

// keep takes a batch into memory: of two deliveries of a key the one with the higher version stays.
func (s *Store) keep(b *sinks.Batch) {
	for _, r := range b.Records {
		id := audit.HotResultID(r.Interaction.Tenant, r.Interaction.ID, r.Interaction.Digest)
		if old, ok := s.records[id]; !ok || r.Origin.Version() > old.Origin.Version() {
			s.records[id] = r
		}
	}
	for _, r := range b.Rejected {
		s.rejected[place{r.Origin.Topic, r.Origin.Epoch, r.Origin.Partition, r.Origin.Offset}] = r
	}
	for _, m := range b.Markers {
		at := span{place{m.Topic, m.Epoch, m.Partition, m.Lo}, m.Hi}
		if old, ok := s.markers[at]; !ok || m.Generation >= old.Generation {
			s.markers[at] = m
		}
	}
}

// Prepare implements [sinks.Store].
func (s *Store) Prepare(b *sinks.Batch) (sinks.Prepared, error) {
	line, err := json.Marshal(b)
	if err != nil {
		return nil, audit.E("sinks/file: prepare", audit.KindInvalid, err)
	}
	return &prepared{s, b, append(line, '\n')}, nil
}

type prepared struct {
	store *Store
	batch *sinks.Batch
	line  []byte
}

// Send appends the line and flushes it. After a failed write the file is cut back.
func (p *prepared) Send(ctx context.Context) error {
	const op = "sinks/file: append"
	s := p.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return audit.E(op, audit.KindUnavailable, err)
	}
	at, err := s.f.Seek(0, io.SeekEnd)
	if err == nil {
		if _, err = io.Copy(s.f, bytes.NewReader(p.line)); err == nil {
			err = s.f.Sync()
		}
		if err != nil {
			err = errors.Join(err, s.f.Truncate(at))
		}
	}
	if err != nil {
		return audit.E(op, audit.KindUnavailable, err)
	}
	s.keep(p.batch)
	return nil
}

// Markers implements [sinks.Store].
func (s *Store) Markers(_ context.Context, topic string, partition int, from int64) (ms []sinks.Marker, epoch int32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.markers {
		if m.Topic == topic && m.Partition == partition {
			epoch = max(epoch, m.Epoch)
		}
	}
	for _, m := range s.markers {
		if m.Topic == topic && m.Partition == partition && m.Epoch == epoch && m.Hi >= from {
			ms = append(ms, m)
		}
	}
	return sinks.Resolve(ms), epoch, nil
}

// Events implements [sinks.Store].
func (s *Store) Events(_ context.Context, m sinks.Marker) (evs []audit.StreamEvent, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if o := r.Origin; o.Topic == m.Topic && o.Partition == m.Partition && o.Epoch == m.Epoch && m.Lo <= o.Offset && o.Offset <= m.Hi {
			evs = append(evs, r.Event())
		}
	}
	slices.SortFunc(evs, func(a, b audit.StreamEvent) int { return cmp.Compare(a.AuditID.String(), b.AuditID.String()) })
	return evs, nil
}

// Close releases the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.f.Close()
}

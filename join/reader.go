package join

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/sources"
)

// BadFormat is the reason of dead letters that are not of their topic's format.
const BadFormat = "bad_format"

// Reader reads a foreign topic, whose records are of one format. Run may be called once at a time.
type Reader struct {
	*Writer
	source sources.Source
	format call.Format
	dead   DeadLetters
}

// NewReader makes a reader that hands to w what format finds in the records of source.
func NewReader(source sources.Source, format call.Format, w *Writer, dead DeadLetters) *Reader {
	return &Reader{w, source, format, dead}
}

// Run consumes until ctx ends.
func (r *Reader) Run(ctx context.Context) error {
	return r.source.Run(ctx, func(ctx context.Context, g sources.Generation) error {
		from, err := r.positions(ctx, g)
		if err == nil {
			committed := maps.Clone(from)
			err = r.follow(ctx, g, from, func(ctx context.Context, f fetched) error { return r.take(ctx, g, f, committed) })
		}
		if ended(ctx, err) {
			return nil
		}
		return err
	})
}

// take hands on what a chunk's records tell and moves the position behind it. What is read again after a crash, or sent again
// as a dead letter, gives the same parts: none is without a time.
func (r *Reader) take(ctx context.Context, g sources.Generation, f fetched, committed map[int]int64) error {
	var parts []call.Part
	var from []*sources.Record // of each part
	var dead []audit.Rejected
	for i := range f.Records {
		rec := &f.Records[i]
		ps, err := r.parts(rec)
		if err != nil { // of a record of which only some is at fault, the rest is told
			dead = append(dead, letter(g, f.Partition, rec, BadFormat, err.Error()))
		}
		for j := range ps {
			if ps[j].Time.IsZero() {
				ps[j].Time = seen(rec)
			}
			parts, from = append(parts, ps[j]), append(from, rec)
		}
	}
	if len(parts) > 0 {
		err := r.retry(ctx, "parts", func(ctx context.Context) error { return r.Parts(ctx, parts) }, isRefused)
		var refused *RefusedError
		if errors.As(err, &refused) {
			var last *sources.Record
			for _, p := range refused.Refused { // one letter a record
				if from[p.Index] != last {
					last = from[p.Index]
					dead = append(dead, letter(g, f.Partition, last, p.Faults[0].Code, detail(p.Faults)))
				}
			}
		} else if err != nil {
			return err
		}
	}
	if len(dead) > 0 {
		if err := r.retry(ctx, "dead_letter", func(ctx context.Context) error { return r.dead(ctx, dead) }, never); err != nil {
			return err
		}
		r.counted(dead)
	}
	if f.Next <= committed[f.Partition] {
		return nil
	}
	if err := g.Commit(ctx, map[int]int64{f.Partition: f.Next}); err != nil {
		if ended(ctx, err) {
			return err
		}
		r.Logger.Warn("commit failed", "topic", g.Topic(), "error", err.Error()) // the next one supersedes it
		return nil
	}
	committed[f.Partition] = f.Next
	return nil
}

func isRefused(err error) bool {
	var refused *RefusedError
	return errors.As(err, &refused)
}

// parts decodes a record. A decoder that panics must not end the process at each start.
func (r *Reader) parts(rec *sources.Record) (ps []call.Part, err error) {
	defer func() {
		if recover() != nil {
			ps, err = nil, fmt.Errorf("the decoder of %s broke down", r.format.Name())
		}
	}()
	tenant, _ := header(rec, ingest.HeaderTenant)
	if tenant != "" && !ingest.ValidTenant(tenant) {
		return nil, errors.New("header " + ingest.HeaderTenant + " names no tenant")
	}
	kind, _ := header(rec, "content-type")
	return r.format.Parts(call.Payload{
		Body: rec.Value, ContentType: kind, Tenant: tenant, Received: seen(rec),
		Header: func(name string) string { v, _ := header(rec, name); return v },
	})
}

// seen is when a record first came: a dead letter that is sent again bears that time.
func seen(rec *sources.Record) time.Time {
	if s, ok := header(rec, ingest.HeaderEventTime); ok {
		if t, err := time.Parse(time.RFC3339, s); err == nil {
			return t
		}
	}
	return rec.Time
}

// letter is a record that became nothing, or not all it tells.
func letter(g sources.Generation, partition int, rec *sources.Record, reason, detail string) audit.Rejected {
	r := rejected(audit.Origin{Topic: g.Topic(), Partition: partition, Offset: rec.Offset, BrokerTime: rec.Time}, rec.Key, rec.Value, rec.Headers)
	r.Reason, r.Detail = reason, detail
	return r
}

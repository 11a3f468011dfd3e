package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

const (
	ringAge   = 7 * 24 * time.Hour
	ringBytes = 256 << 20 // of a topic, over all its partitions
	reopenAt  = 90        // percent of the cap: a log that was full takes records again below this
	// lookFull is how often a full log is looked at for what was consumed meanwhile; the look costs microseconds.
	lookFull = 250 * time.Millisecond
)

// Trim deletes what nobody waits for, measures the log and decides whether it is full. The broker
// calls it by itself; a caller may ask for it at any time.
func (b *Broker) Trim(ctx context.Context) error {
	b.trimming.Lock()
	defer b.trimming.Unlock()
	if ctx.Err() != nil {
		return audit.E("embedded/broker: trim", audit.KindUnavailable, ctx.Err())
	}
	now := b.opt.now()
	var errs []error
	for _, t := range b.topics() {
		groups := b.groupsOf(t.Name)
		parts := b.cluster.PartitionInfos(t.Name)
		for _, p := range parts {
			to := p.LogStartOffset
			switch {
			case len(groups) > 0:
				to = b.committed(groups, t.Name, p)
			case isRing(t.Name):
				to = b.diary.ring(t.Name, p, now, ringBytes/int64(len(parts)))
			}
			to = min(to, p.HighWatermark-1) // the last record stays
			if to <= p.LogStartOffset {
				continue
			}
			if err := b.cluster.DeleteRecords(t.Name, p.Partition, to); err != nil {
				errs = append(errs, fmt.Errorf("%s-%d: %w", t.Name, p.Partition, err))
			}
		}
	}
	b.measure()
	if err := b.diary.save(); err != nil {
		errs = append(errs, err)
	}
	return audit.E("embedded/broker: trim", audit.KindInternal, errors.Join(errs...))
}

// committed is the offset below which no group waits for a partition's records: of one that has committed nothing, its start.
func (b *Broker) committed(groups []string, topic string, p *kfake.PartitionInfo) int64 {
	to := p.HighWatermark
	for _, g := range groups {
		at := p.LogStartOffset
		if info := b.cluster.GroupInfo(g); info != nil {
			if c, ok := info.Commits[topic][p.Partition]; ok {
				at = c.Offset
			}
		}
		to = min(to, at)
	}
	return to
}

// consumed tells whether the group has read interactions that are still in the log.
func (b *Broker) consumed() bool {
	groups := b.groupsOf(kafkaconn.Interactions)
	for _, p := range b.cluster.PartitionInfos(kafkaconn.Interactions) {
		if min(b.committed(groups, kafkaconn.Interactions, p), p.HighWatermark-1) > p.LogStartOffset {
			return true
		}
	}
	return false
}

func isRing(topic string) bool {
	return topic == kafkaconn.AuditStream || topic == kafkaconn.DeadLetters
}

func (b *Broker) groupsOf(topic string) []string {
	if g, ok := b.opt.Groups[topic]; ok {
		return []string{g}
	}
	return kafkaconn.GroupsOf(topic)
}

// measure takes the log's size from kfake and decides whether it is still full.
func (b *Broker) measure() {
	var n int64
	for _, p := range b.cluster.PartitionInfos(kafkaconn.Interactions) {
		n += p.NumBytes
	}
	b.size.Store(n)
	if b.full.Load() && n <= b.cap*reopenAt/100 {
		b.full.Store(false)
		b.log.Info("the broker takes interactions again", "bytes", n, "cap", b.cap)
	}
}

// refuse decides about one request that produces interactions. It runs on kfake's goroutine, as often
// as the request has partitions; the bytes count once.
func (b *Broker) refuse(req *kmsg.ProduceRequest) bool {
	if b.full.Load() {
		return true
	}
	if req == b.counted {
		return false
	}
	b.counted = req
	var n int64
	for i := range req.Topics {
		for j := range req.Topics[i].Partitions {
			n += int64(len(req.Topics[i].Partitions[j].Records))
		}
	}
	if b.size.Add(n) < b.cap {
		return false
	}
	b.full.Store(true)
	b.counted = nil
	b.log.Warn("the broker's log is full: interactions are refused until the pipeline catches up", "cap", b.cap)
	select {
	case b.trimSoon <- struct{}{}:
	default:
	}
	return true
}

func (b *Broker) loop(ctx context.Context) {
	every := b.opt.TrimEvery
	if every <= 0 {
		every = 30 * time.Second
	}
	t, look := time.NewTicker(every), time.NewTicker(lookFull)
	defer t.Stop()
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		case <-b.trimSoon:
		case <-look.C:
			if !b.full.Load() || !b.consumed() {
				continue
			}
		}
		if err := b.tick(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("rolling the broker's segments failed", "error", err.Error())
		}
		if err := b.Trim(ctx); err != nil && ctx.Err() == nil {
			b.log.Warn("trimming the broker's log failed", "error", err.Error())
		}
	}
}

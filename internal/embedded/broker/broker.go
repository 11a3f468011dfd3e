// Package broker is the embedded Kafka broker: kfake of the franz-go project with its log on disk and
// every write synced, for one process on one machine. It speaks the Kafka protocol on 127.0.0.1 only.
//
// What it adds to kfake:
//
//   - one owner: the folder is locked, a second broker on it is refused with the pid of the first;
//   - time: every batch is stamped with the broker's clock, as LogAppendTime asks (kfake keeps the
//     producer's time);
//   - it never deletes what is not consumed: topics with a group (kafkaconn.GroupOf) are trimmed up to
//     the group's position and never of their last record, because kfake starts again at offset 0
//     after a kill when a log is empty. bias.audit.stream and the dead letters are rings of 7 days and
//     256 MB. Decisions and checkpoints are kept whole: kfake's compaction deletes a log's files
//     before it writes the new ones and a kill in between would lose them;
//   - a cap: at Options.MaxLogBytes, or 20 % of the disk that was free, producing to llm.interactions
//     is refused with POLICY_VIOLATION, which clients hand to their callers at once, until trimming
//     made room, which a full log does within a second of what the group commits. Other topics go on;
//   - a tick: once a day a record with the header evenhand-tick rolls the segment of a quiet log, so
//     that consumed text leaves the disk.
//
// A write that failed (full disk) is answered with an error and cut off again; what was acknowledged
// stays. kfake ignores the result of fsync itself: a disk that lies about it is not noticed here.
package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// Options configure a broker. The zero value is not meant to run: Dir must be set; start from
// DefaultOptions.
type Options struct {
	// Dir holds the log. It is made when missing and belongs to one broker at a time.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one.
	Port int
	// Partitions of the topics that carry traffic, when they are created. Default 2.
	Partitions int
	// MaxLogBytes caps what waits in llm.interactions. The cap in force is this or 20 % of what was
	// free on the disk at the start (with the log's own size), whichever is less. Default 8 GiB.
	MaxLogBytes int64
	// Topics are further topics, of other formats, that are made and kept as those of interactions are; Groups says who reads them.
	Topics []string
	// Groups overrides the consumer group that a topic's records wait for (kafkaconn.GroupsOf).
	Groups map[string]string
	// TrimEvery is the time between two trims of a log that is not full. Default 30s.
	TrimEvery time.Duration
	// Logger hears of what an operator should know; nil is quiet.
	Logger *slog.Logger

	now func() time.Time // for tests; nil is time.Now
}

// DefaultOptions are for a folder: a free port, 2 partitions, 8 GiB.
func DefaultOptions(dir string) Options {
	return Options{Dir: dir, Partitions: 2, MaxLogBytes: 8 << 30, TrimEvery: 30 * time.Second}
}

const (
	segmentBytes = 16 << 20 // reopening reads whole segments: small ones keep memory small
)

// Broker is a running broker.
type Broker struct {
	opt     Options
	cluster *kfake.Cluster
	addr    string
	lock    *os.File
	log     *slog.Logger

	cap       int64
	size      atomic.Int64 // of llm.interactions, in bytes, estimated between trims
	full      atomic.Bool
	counted   *kmsg.ProduceRequest // the last one that size holds; kfake's goroutine only
	trimming  sync.Mutex
	diary     diary
	trimSoon  chan struct{}
	stop      context.CancelFunc
	loops     sync.WaitGroup
	closeOnce sync.Once
}

// Start opens the log in opt.Dir, creates what topics are missing and listens. ctx bounds the start
// only. Errors of class invalid name the key and the mend.
func Start(ctx context.Context, opt Options) (_ *Broker, err error) {
	const op = "embedded/broker: start"
	if opt.Dir == "" {
		return nil, audit.E(op, audit.KindInvalid, errors.New("broker.dir: is empty; name a folder for the log"))
	}
	if opt.now == nil {
		opt.now = time.Now
	}
	b := &Broker{opt: opt, log: opt.Logger, trimSoon: make(chan struct{}, 1)}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, audit.E(op, audit.KindInvalid, fmt.Errorf("broker.dir: %w", err))
	}
	if b.lock, err = lockDir(opt.Dir); err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	defer func() {
		if err != nil {
			_ = b.lock.Close()
		}
	}()
	if err := b.open(ctx); err != nil {
		return nil, err
	}
	lctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.loops.Go(func() { b.loop(lctx) })
	return b, nil
}

// Free tells why Start would fail at once with these options: another process has the folder or the port. It keeps neither.
func Free(opt Options) error {
	const op = "embedded/broker: start"
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return audit.E(op, audit.KindInvalid, fmt.Errorf("broker.dir: %w", err))
	}
	lock, err := lockDir(opt.Dir)
	if err != nil {
		return audit.E(op, audit.KindInvalid, err)
	}
	defer func() { _ = lock.Close() }()
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(opt.Port)))
	if err != nil {
		return audit.E(op, audit.KindInvalid, portFault(opt.Port, err))
	}
	_ = ln.Close() // it only looked
	return nil
}

func portFault(port int, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("broker.port: 127.0.0.1:%d is taken by another process; choose another port, or 0 for a free one", port)
	}
	return fmt.Errorf("broker.port: %d: %w", port, err)
}

func (b *Broker) open(ctx context.Context) error {
	const op = "embedded/broker: start"
	data := filepath.Join(b.opt.Dir, "log")
	if err := mendSnapshots(data); err != nil { // costs memory and time, not records
		b.log.Warn("the broker's log is opened the slow way", "error", err.Error())
	}
	var listenErr error
	gate := make(chan struct{}) // nobody gets in before the hooks are in place
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.Ports(b.opt.Port), kfake.ClusterID("evenhand"),
		kfake.DataDir(data), kfake.SyncWrites(), kfake.MaxVersions(versions()),
		kfake.WithLogger(&logBridge{log: b.log, now: b.opt.now}),
		kfake.ListenFn(func(network, address string) (net.Listener, error) {
			ln, err := net.Listen(network, address)
			listenErr = err
			if err != nil {
				return nil, err
			}
			return &gated{Listener: ln, log: b.log, open: gate, closed: make(chan struct{})}, nil
		}),
		kfake.BrokerConfigs(map[string]string{
			"log.segment.bytes":         strconv.Itoa(segmentBytes),
			"log.retention.ms":          "-1",
			"offsets.retention.minutes": strconv.Itoa(1 << 30), // positions outlive a long holiday
		}),
	)
	switch {
	case listenErr != nil:
		return audit.E(op, audit.KindInvalid, portFault(b.opt.Port, listenErr))
	case err != nil:
		return audit.E(op, audit.KindInternal, fmt.Errorf("broker.dir: %s: %w", b.opt.Dir, err))
	}
	b.cluster = cluster
	b.addr = cluster.ListenAddrs()[0]
	b.measure()
	if b.cap, err = capFor(b.opt.Dir, b.opt.MaxLogBytes, b.size.Load()); err != nil {
		cluster.Close()
		return audit.E(op, audit.KindInternal, err)
	}
	b.installFaults()
	close(gate)
	if err := b.createTopics(ctx); err != nil {
		cluster.Close()
		return audit.E(op, audit.KindInternal, err)
	}
	if b.diary, err = openDiary(filepath.Join(b.opt.Dir, "diary.json")); err != nil {
		b.log.Warn("the broker's diary is started anew", "error", err.Error())
	}
	if err := b.Trim(ctx); err != nil {
		cluster.Close()
		return err
	}
	return nil
}

// versions are those of the protocol that the broker takes: all but
//
//   - producing by topic id, where kfake panics over two ids that it does not know;
//   - DescribeTopicPartitions, and what CreateTopics answers from version 5 on: kfake sends null for arrays that Java's
//     AdminClient reads without looking. Without them it asks for Metadata, and for version 4.
func versions() *kversion.Versions {
	v := kversion.Stable()
	v.SetMaxKeyVersion(int16(kmsg.Produce), 12)
	v.SetMaxKeyVersion(int16(kmsg.DescribeTopicPartitions), -1)
	v.SetMaxKeyVersion(int16(kmsg.CreateTopics), 4)
	return v
}

// Addr is host:port of the broker.
func (b *Broker) Addr() string { return b.addr }

// Full tells that producing to llm.interactions is refused for now.
func (b *Broker) Full() bool { return b.full.Load() }

// Size is the number of bytes in llm.interactions, estimated between trims.
func (b *Broker) Size() int64 { return b.size.Load() }

// Cap is the size at which llm.interactions is full, in bytes.
func (b *Broker) Cap() int64 { return b.cap }

// Close stops the broker and writes its state, waiting at most until ctx ends. It may be called twice.
func (b *Broker) Close(ctx context.Context) error {
	b.closeOnce.Do(func() {
		b.stop()
		b.loops.Go(func() {
			b.trimming.Lock() // a trim in progress ends first
			defer b.trimming.Unlock()
			b.cluster.Close()
			_ = b.lock.Close()
		})
	})
	done := make(chan struct{})
	go func() { b.loops.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return audit.E("embedded/broker: close", audit.KindUnavailable, ctx.Err())
	}
}

// topics are all that the broker keeps.
func (b *Broker) topics() []kafkaconn.Topic {
	all := kafkaconn.Topics(b.opt.Partitions)
	for _, name := range b.opt.Topics {
		all = append(all, kafkaconn.TenantTopic(name, b.opt.Partitions)) // its settings are those of interactions
	}
	return all
}

// createTopics makes the missing topics. Retention is this package's own (Trim), so kfake's is off. A
// segment size that a kill in the middle of a tick left behind is set right.
func (b *Broker) createTopics(ctx context.Context) error {
	for _, t := range b.topics() {
		config := map[string]string{}
		maps.Copy(config, t.Config)
		config["cleanup.policy"] = "delete"
		config["retention.ms"], config["retention.bytes"] = "-1", "-1"
		config["segment.bytes"] = strconv.Itoa(segmentBytes)
		err := b.cluster.CreateTopic(t.Name, int32(t.Partitions), config)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			return fmt.Errorf("create %s: %w", t.Name, err)
		}
	}
	var wrong []string
	for _, topic := range b.texts() {
		if v := b.cluster.TopicInfo(topic).Configs["segment.bytes"]; v == nil || *v != strconv.Itoa(segmentBytes) {
			wrong = append(wrong, topic)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	cl, release, err := b.client()
	if err != nil {
		return err
	}
	defer release()
	var errs []error
	for _, topic := range wrong {
		errs = append(errs, setSegmentBytes(ctx, cl, topic, segmentBytes))
	}
	return errors.Join(errs...)
}

func (b *Broker) client() (*kafka.Client, func(), error) {
	return kafkaconn.Config{Brokers: []string{b.addr}, ClientID: "evenhand-broker"}.Client()
}

// installFaults hooks into producing, on kfake's own goroutine: the first hook stamps, the second
// counts and refuses while the log is full.
func (b *Broker) installFaults() {
	var last *kmsg.ProduceRequest // hooks run once a partition of a request
	b.cluster.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Count: -1,
		When: func(r kmsg.Request) bool {
			if req, ok := r.(*kmsg.ProduceRequest); ok && req != last {
				last = req
				stamp(req, b.opt.now().UnixMilli())
			}
			return false
		},
	}, kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: kafkaconn.Interactions, Count: -1, Err: kerr.PolicyViolation,
		When: func(r kmsg.Request) bool { return b.refuse(r.(*kmsg.ProduceRequest)) },
	})
}

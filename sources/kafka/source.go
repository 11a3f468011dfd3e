// Package kafka is the interactions' source: a Kafka topic consumed by a group, on kafka-go's
// ConsumerGroup for membership and one fetch loop of our own for data.
//
// A generation is one assignment. Its context ends with it; serve then has RebalanceTimeout less a
// margin to finish its batch and commit before the member joins again. kafka-go's heartbeats end with
// the generation, so while serve finishes the runner sends its own: the broker would expel the member
// after SessionTimeout and refuse its commit, however much of RebalanceTimeout is left, and the join
// that follows would move the partitions again. A generation that is over
// refuses to fetch and to commit. There is no Reader and no queue in between: what was not asked for
// is not read, and nothing is committed under another generation than the one that fetched it.
//
// A record's Time is the time its batch was appended to the log, which is what the topic setting
// message.timestamp.type=LogAppendTime makes of the batch's maximum timestamp; kafka-go's own reader
// drops that field, so batches are decoded here. Control records, records of aborted transactions
// and the broker's own ticks are holes. Fetching asks for committed records only: an open
// transaction of a producer holds back what lies behind it.
//
// Cost: one long poll a partition and 250 ms when idle. Record bytes share one buffer a fetch (a
// batch, when compressed), which is free again once no record of it is held.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

// TickHeader marks a record that the embedded broker writes into a quiet log, so that old segments
// can be deleted. It carries no message and is a hole to readers.
const TickHeader = "evenhand-tick"

// UndecodableHeader marks a record that stands for a batch whose bytes could not be decoded. Its
// value is empty, the header's value says why.
const UndecodableHeader = "evenhand-undecodable"

// firstWait is how long is waited at most after a first failure.
const firstWait = 100 * time.Millisecond

// Config is what an operator may set. Start from DefaultConfig.
type Config struct {
	// Group is the consumer group. Default "evenhand.pipeline".
	Group string `yaml:"group"`
	// Topic holds the interactions. Default "llm.interactions".
	Topic string `yaml:"topic"`
	// SessionTimeout is after how long the broker gives a silent member's partitions away. Default
	// 10s; 1s..5m. Brokers refuse less than 6s unless their group.min.session.timeout.ms allows it.
	SessionTimeout time.Duration `yaml:"session_timeout"`
	// RebalanceTimeout is how long members have to finish their batch when partitions move. Default
	// 30s; 3s..15m.
	RebalanceTimeout time.Duration `yaml:"rebalance_timeout"`
}

// DefaultConfig reads llm.interactions as evenhand.pipeline.
func DefaultConfig() Config {
	return Config{Group: kafkaconn.PipelineGroup, Topic: kafkaconn.Interactions, SessionTimeout: 10 * time.Second, RebalanceTimeout: 30 * time.Second}
}

// Validate reports every fault, with the key as the operator writes it.
func (c Config) Validate() error {
	var errs []error
	if c.Group == "" {
		errs = append(errs, errors.New("kafka.group: is empty; name the consumer group"))
	}
	if c.Topic == "" {
		errs = append(errs, errors.New("kafka.topic: is empty; name the topic of the interactions"))
	}
	if c.SessionTimeout < time.Second || c.SessionTimeout > 5*time.Minute {
		errs = append(errs, fmt.Errorf("kafka.session_timeout: %v is not in 1s..5m", c.SessionTimeout))
	}
	if c.RebalanceTimeout < 3*time.Second || c.RebalanceTimeout > 15*time.Minute {
		errs = append(errs, fmt.Errorf("kafka.rebalance_timeout: %v is not in 3s..15m", c.RebalanceTimeout))
	}
	return errors.Join(errs...)
}

// Options is what the program sets. The zero value is quiet.
type Options struct {
	Logger *slog.Logger
	// OnError is told of every error that was retried or lived with: op is join, topic, fetch,
	// bounds, commit, decode, overdue (serve did not return in time) or close. It must not block.
	OnError func(op string, err error)
}

const (
	heartbeat     = time.Second
	watchInterval = 2 * time.Second        // for new partitions
	joinTimeout   = 3 * time.Second        // of each step of a join
	joinBackoff   = 500 * time.Millisecond // after a failed join
	closeWait     = 4 * time.Second        // Run waits so long for groups to leave; their own timeouts end the rest
	margin        = 2 * time.Second        // of RebalanceTimeout, kept for the join itself; less than its least
)

// Source consumes one topic. Run may be called once at a time.
type Source struct {
	conn kafkaconn.Config
	cfg  Config
	opt  Options
}

var _ sources.Source = (*Source)(nil)

// New checks the configuration; it connects to nobody yet.
func New(conn kafkaconn.Config, cfg Config, opt Options) (*Source, error) {
	if err := errors.Join(conn.Validate(), cfg.Validate()); err != nil {
		return nil, audit.E("sources/kafka: new", audit.KindInvalid, err)
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.OnError == nil {
		opt.OnError = func(string, error) {}
	}
	return &Source{conn: conn, cfg: cfg, opt: opt}, nil
}

// Run implements [sources.Source]. It waits for the topic when it does not exist yet, and outlives
// every outage of the brokers; only ctx and serve end it.
func (s *Source) Run(ctx context.Context, serve func(ctx context.Context, g sources.Generation) error) error {
	const op = "sources/kafka: run"
	transport, err := s.conn.Transport()
	if err != nil {
		return audit.E(op, audit.KindInvalid, err)
	}
	defer transport.CloseIdleConnections()
	dialer, err := s.conn.Dialer()
	if err != nil {
		return audit.E(op, audit.KindInvalid, err)
	}
	r := &runner{Source: s, brokers: slices.Clone(s.conn.Brokers), dialer: dialer}
	r.log = &reader{
		topic: s.cfg.Topic, transport: transport, addr: kafka.TCP(s.conn.Brokers...), onError: s.opt.OnError,
		client: &kafka.Client{Addr: kafka.TCP(s.conn.Brokers...), Transport: transport, Timeout: fetchTimeout},
	}
	if !r.awaitTopic(ctx) {
		return nil
	}
	if r.group, err = r.join(); err != nil {
		return audit.E(op, audit.KindInvalid, err)
	}
	defer r.close()
	return r.loop(ctx, serve)
}

// runner is one call of Run.
type runner struct {
	*Source
	brokers []string // rotated when the first one hangs
	dialer  *kafka.Dialer
	group   *kafka.ConsumerGroup
	closing sync.WaitGroup // groups being left in the background
	log     *reader
}

func (r *runner) join() (*kafka.ConsumerGroup, error) {
	return kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: r.cfg.Group, Brokers: r.brokers, Topics: []string{r.cfg.Topic}, Dialer: r.dialer,
		StartOffset:       kafka.FirstOffset, // LastOffset would lose what came before the first commit
		HeartbeatInterval: r.heartbeat(), SessionTimeout: r.cfg.SessionTimeout, RebalanceTimeout: r.cfg.RebalanceTimeout,
		Timeout: joinTimeout, JoinGroupBackoff: joinBackoff,
		WatchPartitionChanges: true, PartitionWatchInterval: watchInterval,
	})
}

func (r *runner) loop(ctx context.Context, serve func(context.Context, sources.Generation) error) error {
	for fails, short := 0, 0; ; {
		gen, err := r.group.Next(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			r.opt.OnError("join", err)
			r.opt.Logger.Warn("joining the consumer group failed", "group", r.cfg.Group, "error", err.Error())
			if err := r.rejoin(err); err != nil {
				return audit.E("sources/kafka: rejoin", audit.KindInvalid, err)
			}
			fails++
			if !wait.For(ctx, wait.Backoff(firstWait, fails)) {
				return nil
			}
			continue
		}
		fails = 0
		began := time.Now()
		if err := r.serve(ctx, gen, serve); err != nil || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > time.Second {
			short = 0
		} else if short++; !wait.For(ctx, wait.Backoff(firstWait, min(short, 3))) { // generations that end at once must not spin
			return nil
		}
	}
}

// rejoin handles a failed join. kafka-go asks the brokers in the order of the list and a hung broker
// accepts the dial, so after an error of the network the group is built anew with the list rotated.
// An answer of the broker (a kafka.Error) needs nothing: the group tries again by itself.
func (r *runner) rejoin(cause error) error {
	var answer kafka.Error
	if errors.As(cause, &answer) {
		return nil
	}
	old := r.group
	r.closing.Go(func() { _ = old.Close() })
	r.brokers = append(r.brokers[1:], r.brokers[0])
	group, err := r.join()
	if err == nil {
		r.group = group
	}
	return err
}

// serve runs one generation to its end. It returns an error only for what is not about the end.
func (r *runner) serve(ctx context.Context, gen *kafka.Generation, serve func(context.Context, sources.Generation) error) error {
	sctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := newGeneration(gen, r.log, r.cfg.Topic)
	served := make(chan struct{})
	watched := make(chan struct{})
	// kafka-go joins again when this function returns.
	gen.Start(func(gctx context.Context) {
		defer close(watched)
		defer g.over.Store(true)
		select {
		case <-gctx.Done():
		case <-served:
			return
		}
		failpoint.Hit(failpoint.Rebalance, "")
		cancel()
		stop := r.beat(ctx, gen)
		defer stop()
		t := time.NewTimer(r.cfg.RebalanceTimeout - margin)
		defer t.Stop()
		select {
		case <-served:
		case <-t.C:
			r.opt.OnError("overdue", errOverdue)
			r.opt.Logger.Error("the pipeline did not finish before its partitions moved", "group", r.cfg.Group, "generation", gen.ID)
		}
	})
	r.opt.Logger.Info("partitions assigned", "group", r.cfg.Group, "topic", r.cfg.Topic, "generation", gen.ID, "partitions", len(g.claims))
	var err error
	if len(g.claims) == 0 { // more members than partitions: nothing to do until the next assignment
		<-sctx.Done()
	} else {
		err = serve(sctx, g)
	}
	ended := sctx.Err() != nil
	close(served)
	if ctx.Err() == nil {
		<-watched // served is closed, so this is at once
	}
	if err == nil || errors.Is(err, sources.ErrGenerationEnded) || ended && audit.KindOf(err) == audit.KindUnavailable {
		return nil
	}
	return err
}

// heartbeat is how often the broker is told that the member lives.
func (r *runner) heartbeat() time.Duration { return min(heartbeat, r.cfg.SessionTimeout/3) }

// beat sends the member's heartbeats from here on until stop is called, which waits for the last one. The answer
// that the group is joining again is expected. Any other error has the coordinator looked up again; what such an
// error leads to, a refused commit, is told by the commit.
func (r *runner) beat(ctx context.Context, gen *kafka.Generation) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var beating sync.WaitGroup
	beating.Go(func() {
		var coordinator net.Addr
		for {
			if coordinator == nil {
				coordinator = r.coordinator(ctx, gen.GroupID)
			}
			if coordinator != nil {
				ans, err := r.log.client.Heartbeat(ctx, &kafka.HeartbeatRequest{Addr: coordinator, GroupID: gen.GroupID, GenerationID: gen.ID, MemberID: gen.MemberID})
				if err != nil || ans.Error != nil && !errors.Is(ans.Error, kafka.RebalanceInProgress) {
					coordinator = nil
				}
			}
			if !wait.For(ctx, r.heartbeat()) {
				return
			}
		}
	})
	return func() { cancel(); beating.Wait() }
}

// coordinator is the address of the broker that leads the group, nil when no broker tells.
func (r *runner) coordinator(ctx context.Context, group string) net.Addr {
	ans, err := r.log.client.FindCoordinator(ctx, &kafka.FindCoordinatorRequest{Key: group, KeyType: kafka.CoordinatorKeyTypeConsumer})
	if err != nil || ans.Error != nil {
		return nil
	}
	return kafka.TCP(net.JoinHostPort(ans.Coordinator.Host, strconv.Itoa(ans.Coordinator.Port)))
}

var errOverdue = errors.New("serve has not returned within the rebalance timeout")

// awaitTopic waits until the topic has partitions; false when ctx ended first. A group that joins
// for a missing topic would join again all the time.
func (r *runner) awaitTopic(ctx context.Context) bool {
	for fails := 0; ctx.Err() == nil; fails++ {
		mctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		meta, err := r.log.client.Metadata(mctx, &kafka.MetadataRequest{Topics: []string{r.cfg.Topic}})
		cancel()
		if err == nil && len(meta.Topics) == 1 {
			if err = meta.Topics[0].Error; err == nil && len(meta.Topics[0].Partitions) > 0 {
				return true
			}
		}
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			r.opt.OnError("topic", err)
		}
		if fails == 0 {
			r.opt.Logger.Warn("waiting for the topic", "topic", r.cfg.Topic)
		}
		if !wait.For(ctx, wait.Backoff(firstWait, min(fails+1, 5))) {
			return false
		}
	}
	return false
}

// close leaves the group and waits a bounded time: with the brokers gone, kafka-go's own timeouts
// end the rest soon after.
func (r *runner) close() {
	last := r.group
	r.closing.Go(func() { _ = last.Close() })
	done := make(chan struct{})
	go func() { r.closing.Wait(); close(done) }()
	t := time.NewTimer(closeWait)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
		r.opt.OnError("close", errors.New("leaving the group takes long; its partitions move when the session ends"))
	}
}

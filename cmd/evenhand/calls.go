package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	kafkago "github.com/segmentio/kafka-go"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/litellm"
	"github.com/evenhand/evenhand/ingest/otlp"
	"github.com/evenhand/evenhand/ingest/pricing"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/join"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/sources/kafka"
)

// formats are the decoders of what other clients send, by the names that formats.topics takes.
var formats = map[string]func(settings) call.Format{
	"otlp":     func(s settings) call.Format { return otlp.Traces(s.OTLP) },
	"otlplogs": func(s settings) call.Format { return otlp.Logs(s.OTLP) },
	"litellm":  func(settings) call.Format { return litellm.Format{} },
}

type joinSettings struct {
	// Window is how long the parts of a call wait after the last one that came; after a minute they are told in any case.
	Window time.Duration `koanf:"window"`
	// Groups and MemoryMB bound what waits in this process; the oldest is told early.
	Groups   int   `koanf:"groups"`
	MemoryMB int64 `koanf:"memory_mb"`
}

func defaultJoin() joinSettings {
	c := join.DefaultConfig()
	return joinSettings{c.Window, c.Groups, c.MemoryBytes >> 20}
}

func (s joinSettings) config() join.Config {
	return join.Config{Window: s.Window, Groups: s.Groups, MemoryBytes: s.MemoryMB << 20}
}

type formatsSettings struct {
	// Topics are topics whose records are of another format, "TOPIC=FORMAT".
	Topics []string `koanf:"topics"`
}

type pricingSettings struct {
	// File is a table of prices for calls that tell no cost; "" for none.
	File string `koanf:"file"`
}

// prices reads the table, nil when there is none.
func (s settings) prices() (*pricing.Table, error) {
	if s.Pricing.File == "" {
		return nil, nil
	}
	t, err := pricing.Load(s.Pricing.File)
	if err != nil {
		return nil, fmt.Errorf("pricing.file: %s: %w", s.Pricing.File, errors.Unwrap(err))
	}
	return t, nil
}

// foreignTopic is a topic whose records are of another format.
type foreignTopic struct{ topic, format string }

// group is the consumer group that reads it.
func (f foreignTopic) group() string { return kafkaconn.GroupOf(kafkaconn.Calls) + "." + f.topic }

// foreignTopics are those of formats.topics.
func (s settings) foreignTopics() (all []foreignTopic, err error) {
	var errs []error
	ours := s.topics()
	for _, entry := range s.Formats.Topics {
		topic, format, ok := strings.Cut(entry, "=")
		switch {
		case !ok || !topicName.MatchString(topic):
			errs = append(errs, fmt.Errorf("formats.topics: %q is not TOPIC=FORMAT, such as otlp_spans=otlp", entry))
		case formats[format] == nil:
			errs = append(errs, fmt.Errorf("formats.topics: %q is no format; there are: %s", format, strings.Join(slices.Sorted(maps.Keys(formats)), ", ")))
		case slices.ContainsFunc(ours, func(t kafkaconn.Topic) bool { return t.Name == topic }):
			errs = append(errs, fmt.Errorf("formats.topics: %s is a topic of Evenhand's own", topic))
		case slices.ContainsFunc(all, func(f foreignTopic) bool { return f.topic == topic }):
			errs = append(errs, fmt.Errorf("formats.topics: %s stands there twice", topic))
		}
		all = append(all, foreignTopic{topic, format})
	}
	return all, errors.Join(errs...)
}

func (s settings) foreignNames() (names []string) {
	all, _ := s.foreignTopics() // validated when the settings were read
	for _, f := range all {
		names = append(names, f.topic)
	}
	return names
}

// brokerGroups says which consumer groups the embedded broker keeps records for, where that is not fixed.
func (s settings) brokerGroups() map[string]string {
	groups := map[string]string{kafkaconn.Interactions: s.Kafka.Group}
	all, _ := s.foreignTopics()
	for _, f := range all {
		groups[f.topic] = f.group()
	}
	return groups
}

// calls makes events of what clients of other formats tell.
type calls struct {
	joiner  *join.Joiner
	readers []*join.Reader
	letters *stream.Publisher
}

func (c *calls) run(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return c.joiner.Run(ctx) })
	for _, r := range c.readers {
		g.Go(func() error { return r.Run(ctx) })
	}
}

// callOptions say how calls become events, at doors and in the joiner.
func (st *stack) callOptions() (join.Options, error) {
	prices, err := st.settings.prices()
	if err != nil {
		return join.Options{}, &settingsError{err}
	}
	return join.Options{
		Decoder: ingest.NewDecoder(st.settings.decoder()), Producer: &frontDoor{st}, DefaultTenant: st.settings.Tenant.Default,
		Prices: prices, Limit: kafkaconn.MaxMessage, Observer: st.metrics.CallObserver(), Logger: st.log,
	}, nil
}

// callWriter is what doors of other formats write to.
func (st *stack) callWriter() (*join.Writer, error) {
	o, err := st.callOptions()
	if err != nil {
		return nil, err
	}
	return join.NewWriter(o, callsDoor{st})
}

// callsDoor writes parts of calls. While nobody can take interactions, nobody takes these.
type callsDoor struct{ st *stack }

// Produce implements join.Log.
func (d callsDoor) Produce(ctx context.Context, ms []kafkago.Message) error {
	if d.st.broker != nil && d.st.broker.Full() {
		return audit.E("produce", audit.KindOverloaded, errors.New("llm.interactions is at its cap"))
	}
	return d.st.producer.Produce(ctx, ms)
}

// openCalls builds the joiner and the readers of foreign topics.
func (st *stack) openCalls(sink clickhouse.Options) error {
	s := st.settings
	o, err := st.callOptions()
	if err != nil {
		return err
	}
	onError := func(op string, _ error) { st.metrics.BrokerError(op) }
	letters, err := stream.New(st.kafka, stream.DefaultConfig(), stream.Options{Group: kafkaconn.GroupOf(kafkaconn.Calls), OnError: onError})
	if err != nil {
		return err
	}
	st.calls = &calls{letters: letters}
	bury := burying(clickhouse.New(st.conn, st.chconfig.Database, sink), letters)
	open := func(topic, group string) (*kafka.Source, error) {
		c := s.source()
		c.Topic, c.Group = topic, group
		return kafka.New(st.kafka, c, kafka.Options{Logger: st.log, OnError: onError})
	}
	source, err := open(kafkaconn.Calls, kafkaconn.GroupOf(kafkaconn.Calls))
	if err != nil {
		return err
	}
	if st.calls.joiner, err = join.NewJoiner(s.Join.config(), o, source, st.producer, bury); err != nil {
		return err
	}
	st.metrics.FollowCalls(st.calls.joiner.Open)
	foreign, err := s.foreignTopics()
	if err != nil || len(foreign) == 0 {
		return err
	}
	w, err := st.callWriter()
	if err != nil {
		return err
	}
	for _, f := range foreign {
		source, err := open(f.topic, f.group())
		if err != nil {
			return err
		}
		st.calls.readers = append(st.calls.readers, join.NewReader(source, formats[f.format](s), w, bury))
	}
	return nil
}

// burying keeps messages that nobody can make anything of: as rows and texts, which 'dlq' shows, and as dead letters.
func burying(rows *clickhouse.Sink, letters *stream.Publisher) func(context.Context, []audit.Rejected) error {
	return func(ctx context.Context, rs []audit.Rejected) error {
		p, err := rows.Prepare(&sinks.Batch{Rejected: rs})
		if err == nil {
			err = p.Send(ctx)
		}
		if err != nil {
			return err
		}
		return letters.DeadLetter(ctx, rs)
	}
}

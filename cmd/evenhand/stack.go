package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/sources/kafka"
)

// Roles of a process.
const (
	rolePipeline = "pipeline" // consumes llm.interactions into the store
	roleAPI      = "api"      // takes interactions over HTTP into Kafka
	roleAnalyzer = "analyzer" // answers /analyze-bias and /v1/evaluate, without broker and store
)

var allRoles = []string{rolePipeline, roleAPI, roleAnalyzer}

// newAnalyzer lists the detectors: this is the one place that knows them all.
func newAnalyzer(s settings) (*detectors.Analyzer, error) {
	biasPacks, err := rules.Load(bias.Packs())
	if err != nil {
		return nil, err
	}
	safetyPacks, err := rules.Load(safety.Packs())
	if err != nil {
		return nil, err
	}
	b, err := bias.New(biasPacks)
	if err != nil {
		return nil, err
	}
	sf, err := safety.New(safetyPacks)
	if err != nil {
		return nil, err
	}
	g, err := gate.New(s.Detect.GateRules, s.Detect.GateExtraRules)
	if err != nil {
		return nil, &settingsError{err}
	}
	t, err := terms.New(s.termsConfig())
	if err != nil {
		return nil, &settingsError{err}
	}
	return detectors.NewAnalyzer(s.policy(), b, sf, g, t)
}

// stack is a running Evenhand process.
type stack struct {
	settings settings
	roles    []string
	log      *slog.Logger
	metrics  *obs.Metrics
	tracer   *obs.Tracer
	analyzer *detectors.Analyzer

	broker    *broker.Broker // embedded, else nil
	engine    *engine.Engine // embedded, else nil
	kafka     kafkaconn.Config
	chconfig  chconn.Config
	conn      driver.Conn
	publisher *stream.Publisher
	producer  *kafkaconn.Producer
	pipeline  *pipeline.Pipeline
	listener  net.Listener
	server    *http.Server
}

func (st *stack) has(role string) bool { return slices.Contains(st.roles, role) }

// start brings everything up in order; on an error what was begun is closed again.
func start(ctx context.Context, s settings, roles []string, embedded bool, log *slog.Logger) (st *stack, err error) {
	st = &stack{settings: s, roles: roles, log: log, kafka: s.kafka(), chconfig: s.clickhouse()}
	defer func() {
		if err != nil {
			st.close(context.WithoutCancel(ctx))
			st = nil
		}
	}()
	if st.tracer, err = obs.NewTracer(ctx, s.Trace, version()); err != nil {
		return st, &settingsError{err}
	}
	st.metrics = obs.NewMetrics(st.tracer)
	// The port first: it is the fault that people meet most and costs nothing to find.
	if st.listener, err = net.Listen("tcp", s.HTTP.Addr); err != nil {
		return st, fmt.Errorf("http.addr: cannot listen on %s: %w; choose another with --http or EVENHAND_HTTP_ADDR", s.HTTP.Addr, errors.Unwrap(err))
	}
	// What can be known to be wrong is said before the rules are compiled.
	var lib string
	if embedded {
		if lib, err = engine.Find(s.Engine.Lib); err != nil {
			return st, err
		}
	} else if st.has(rolePipeline) || st.has(roleAPI) {
		if err = st.kafka.Validate(); err != nil {
			return st, &settingsError{err}
		}
	}
	var g errgroup.Group
	g.Go(func() (err error) { st.analyzer, err = newAnalyzer(s); return err })
	if embedded {
		g.Go(func() error { return st.startEmbedded(ctx, lib) })
	}
	if err = g.Wait(); err != nil {
		return st, err
	}
	if s.Pipeline.MemoryMB > 0 {
		debug.SetMemoryLimit(s.Pipeline.MemoryMB << 20) // not before: compiling the rules takes more for a moment
	}
	if st.has(rolePipeline) || st.has(roleAPI) {
		if err = st.connect(ctx); err != nil {
			return st, err
		}
	}
	st.server = &http.Server{Handler: st.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	return st, nil
}

// startEmbedded starts broker and store side by side.
func (st *stack) startEmbedded(ctx context.Context, lib string) error {
	s := st.settings
	var g errgroup.Group
	g.Go(func() (err error) {
		st.broker, err = broker.Start(ctx, broker.Options{
			Dir: brokerDir(s), Port: s.Broker.Port, MaxLogBytes: s.Broker.CapMB << 20,
			Partitions: s.Kafka.Partitions, Groups: map[string]string{kafkaconn.Interactions: s.Kafka.Group}, Logger: st.log,
		})
		return err
	})
	g.Go(func() (err error) {
		st.engine, err = engine.Start(ctx, engine.Options{
			Dir: engineDir(s), Lib: lib, MemoryBytes: s.Engine.MemoryMB << 20, Logger: st.log,
			Private:   []string{"interaction_texts", "interaction_users"}, // dashboards need figures, not people's words
			OnRestart: func(error) { st.metrics.EngineRestarted() },
		})
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	st.kafka.Brokers = []string{st.broker.Addr()}
	st.chconfig = st.engine.Config(engine.Writer)
	return nil
}

// connect prepares topics and tables and builds producer and pipeline.
func (st *stack) connect(ctx context.Context) error {
	s := st.settings
	var g errgroup.Group
	g.Go(func() error {
		_, err := kafkaconn.Ensure(ctx, st.kafka, kafkaconn.Topics(s.Kafka.Partitions), s.Kafka.Replication)
		return err
	})
	if st.has(rolePipeline) {
		g.Go(func() error { return migrateStore(ctx, st.chconfig, s.schema(st.engine != nil)) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var err error
	if st.has(roleAPI) {
		if st.producer, err = kafkaconn.NewProducer(st.kafka, kafkaconn.DefaultProducerOptions()); err != nil {
			return err
		}
	}
	if !st.has(rolePipeline) {
		return nil
	}
	if st.conn, err = chconn.Open(st.chconfig); err != nil {
		return err
	}
	if st.publisher, err = stream.New(st.kafka, stream.DefaultConfig(), stream.Options{Group: s.Kafka.Group, OnError: func(op string, _ error) { st.metrics.BrokerError(op) }}); err != nil {
		return err
	}
	from := kafka.DefaultConfig()
	from.Group = s.Kafka.Group
	source, err := kafka.New(st.kafka, from, kafka.Options{Logger: st.log, OnError: func(op string, _ error) { st.metrics.BrokerError(op) }})
	if err != nil {
		return err
	}
	decoder := ingest.NewDecoder(s.decoder())
	st.pipeline, err = pipeline.New(s.pipelineConfig(), pipeline.Parts{
		Source: source, Decode: decoder.Decode, Analyze: st.analyzer.Analyze,
		Store: clickhouse.New(st.conn, st.chconfig.Database), Publisher: st.publisher,
		Observer: st.metrics, Logger: st.log,
	})
	return err
}

// serve runs until ctx ends and then drains: doors first, then the pipeline.
func (st *stack) serve(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := st.server.Serve(st.listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("http: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		shut, cancel := context.WithTimeout(context.WithoutCancel(gctx), 10*time.Second)
		defer cancel()
		return st.server.Shutdown(shut)
	})
	if st.pipeline != nil {
		g.Go(func() error { return st.pipeline.Run(gctx) })
	}
	return g.Wait()
}

// close releases what start opened, in reverse order; it is safe on a half-started stack.
func (st *stack) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	warn := func(what string, err error) {
		if err != nil {
			st.log.Warn("close failed", "what", what, "error", err)
		}
	}
	if st.server == nil && st.listener != nil {
		_ = st.listener.Close()
	}
	if st.producer != nil {
		warn("producer", st.producer.Close(ctx))
	}
	if st.publisher != nil {
		warn("publisher", st.publisher.Close(ctx))
	}
	if st.conn != nil {
		warn("clickhouse", st.conn.Close())
	}
	if st.engine != nil {
		warn("engine", st.engine.Close(ctx))
	}
	if st.broker != nil {
		warn("broker", st.broker.Close(ctx))
	}
	warn("trace", st.tracer.Close(ctx))
}

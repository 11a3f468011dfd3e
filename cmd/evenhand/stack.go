package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/dashboards"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/gateway"
	"github.com/evenhand/evenhand/ingest/door"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/join"
	"github.com/evenhand/evenhand/judge/mend"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/evaluations"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/store"
)

// Roles of a process.
const (
	rolePipeline = "pipeline" // consumes llm.interactions into the store
	roleAPI      = "api"      // takes interactions over HTTP into Kafka and serves GraphQL from the store
	roleAnalyzer = "analyzer" // answers /analyze-bias and /v1/evaluate, without broker and store
	roleJobs     = "jobs"     // takes part in leading the recurring jobs
	// sends tickets and takes trackers' webhooks; idle while no tracker is set up
	roleRemediation = "remediation"
	roleJudge       = "judge" // answers requests on evenhand.judge; idle while no judging model is set up
)

var allRoles = []string{rolePipeline, roleAPI, roleAnalyzer, roleJobs, roleRemediation, roleJudge}

// stack is a running Evenhand process.
type stack struct {
	settings    settings
	roles       []string
	log         *slog.Logger
	metrics     *obs.Metrics
	tracer      *obs.Tracer
	evaluations *evaluations.Sender // nil: nothing is sent
	analyzer    *detectors.Current

	ruleFiles string         // of rules.dir, before they were loaded
	hup       chan os.Signal // nil without rules.dir
	broker    *broker.Broker // embedded, else nil
	engine    *engine.Engine // embedded, else nil
	kafka     kafkaconn.Config
	chconfig  chconn.Config
	conn      driver.Conn
	jobsConn  driver.Conn
	// reader is the store as callers from outside read it; nil without the store.
	reader     *store.Store
	readerConn driver.Conn
	auth       *auth.Authenticator

	publisher *stream.Publisher
	producer  *kafkaconn.Producer
	inline    *door.Inline     // nil without the role api
	pipelines []topicPipeline  // of the role, one a topic of interactions
	graphql   *graphEnd        // nil without the role api
	gateway   *gateway.Gateway // nil unless it is switched on
	decisions *decisionLog     // nil without the store
	gates     *gateEnd         // nil without the roles api and jobs
	jobs      *jobs.Runner     // nil without the role
	writer    *join.Writer     // nil without the role api
	calls     *calls           // nil without the role pipeline
	remedy    *remedy          // nil without a tracker, and without the roles that need one
	mender    *mend.Mender     // nil without the role api
	asking    *asking          // models for whoever asks, and the judge
	judge     *judgeEnd        // nil without a judging model, and without the roles that need one
	listener  net.Listener
	notReady  *notReady       // answers on the port while the start waits
	stopping  context.Context // ends as soon as the doors are being shut
	server    *http.Server
	endBegan  time.Time // zero until a signal came, or a part failed
	gaveUp    []string  // what the end did not let finish
}

func (st *stack) has(role string) bool { return slices.Contains(st.roles, role) }

// stores tells whether a role of this process needs the store.
func (st *stack) stores() bool {
	return st.has(rolePipeline) || st.has(roleAPI) || st.has(roleJobs) || st.remediates() || st.judges()
}

// analyze is the analyzer of the pipeline and the jobs.
func (st *stack) analyze(ctx context.Context, in *audit.Interaction) *audit.Verdict {
	return st.analyzer.Analyze(ctx, in)
}

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
	st.notReady = &notReady{metrics: st.metrics.Handler()}
	if st.evaluations, err = s.Evaluations.sender(ctx, st.metrics.EvaluationEvent, log); err != nil {
		return st, err
	}
	if err = heedFiles(openFiles(), embedded, log); err != nil {
		return st, err
	}
	// The port first: it is the fault that people meet most and costs nothing to find.
	if st.listener, err = net.Listen("tcp", s.HTTP.Addr); err != nil {
		return st, fmt.Errorf("http.addr: cannot listen on %s: %w; choose another with --http or EVENHAND_HTTP_ADDR", s.HTTP.Addr, errors.Unwrap(err))
	}
	st.notReady.port, _ = st.listener.(*net.TCPListener)
	// What can be known to be wrong is said before the rules are compiled.
	var lib string
	if embedded {
		if lib, err = engine.Find(s.Engine.Lib); err != nil {
			return st, err
		}
		if err = broker.Free(broker.Options{Dir: brokerDir(s), Port: s.Broker.Port}); err != nil {
			return st, err
		}
	} else if st.stores() {
		if err = st.kafka.Validate(); err != nil {
			return st, &settingsError{err}
		}
	}
	if !st.stores() {
		if err = st.letsSomebodyIn(ctx, embedded); err != nil {
			return st, err
		}
	}
	st.heedHangups()
	st.ruleFiles = s.Rules.files()
	defer st.notReady.end()
	if err = st.prepare(ctx, embedded, lib); err != nil {
		return st, err
	}
	st.metrics.FollowEncoders(func() []obs.Answers { return encoderAnswers(st.analyzer.Analyzer()) })
	if s.Pipeline.MemoryMB > 0 {
		debug.SetMemoryLimit(heapLimit(s.Pipeline.MemoryMB, embedded)) // not before: compiling the rules takes more for a moment
		if os.Getenv("GOGC") == "" {
			debug.SetGCPercent(gcPercent)
		}
	}
	if st.asking, err = newAsking(s, st.metrics); err != nil {
		return st, err
	}
	if st.stores() {
		if err = st.connect(ctx); err != nil {
			return st, err
		}
	}
	if err = st.startAuth(ctx, embedded); err != nil {
		return st, err
	}
	if st.has(roleAPI) {
		if st.writer, err = st.callWriter(); err != nil {
			return st, err
		}
		if err = st.startReplays(); err != nil {
			return st, err
		}
		judge, err := st.newInlineJudge()
		if err != nil {
			return st, err
		}
		st.startGuard(judge)                          //nolint:contextcheck // its queues end with close, not with the start
		if err = st.startGateway(judge); err != nil { //nolint:contextcheck // its queue ends with close, not with the start
			return st, err
		}
	}
	stopping, stop := context.WithCancel(context.Background())
	st.stopping = stopping
	st.server = &http.Server{Handler: st.handler(), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10, IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn)}
	st.server.RegisterOnShutdown(stop) // who waits for a person may ask again elsewhere
	if st.graphql != nil {
		st.server.RegisterOnShutdown(st.graphql.Drain) // streams would hold the shutdown up
	}
	if st.gates != nil {
		st.server.RegisterOnShutdown(st.gates.door.Drain) // the same
	}
	return st, nil
}

// prepare compiles the rules and brings up what they are not needed for, side by side. What is outside is looked at
// before: rules take seconds to compile, and what is wrong there is wrong at once.
func (st *stack) prepare(ctx context.Context, embedded bool, lib string) error {
	g, gctx := errgroup.WithContext(ctx)
	looks, looked := 0, make(chan struct{}, 2)
	look := func() { looked <- struct{}{} }
	switch {
	case embedded:
		g.Go(func() error {
			if err := st.startEmbedded(ctx, lib); err != nil {
				return err
			}
			return st.reach(ctx, embedded, look)
		})
	case st.stores():
		looks = cap(looked)
		g.Go(func() error { return st.reach(ctx, embedded, look) })
	}
	g.Go(func() error {
		for range looks {
			select {
			case <-looked:
			case <-gctx.Done():
				return nil // reach says why
			}
		}
		return st.compile()
	})
	return g.Wait()
}

// compile makes the analyzer.
func (st *stack) compile() error {
	st.log.Info("compiling rules and warming models, which may take a while")
	began := time.Now()
	a, err := newAnalyzer(st.settings)
	if err != nil {
		return err
	}
	a.Warm()
	st.analyzer = detectors.NewCurrent(a)
	st.log.Info("rules are ready", "took", time.Since(began))
	return nil
}

// gcPercent lets the heap grow up to the memory limit before garbage is collected; what lives for long,
// the rules, is most of it and would be looked at again and again.
const gcPercent = 400

// startEmbedded starts broker and store side by side.
func (st *stack) startEmbedded(ctx context.Context, lib string) error {
	s := st.settings
	var g errgroup.Group
	g.Go(func() (err error) {
		st.broker, err = broker.Start(ctx, broker.Options{
			Dir: brokerDir(s), Port: s.Broker.Port, MaxLogBytes: s.Broker.CapMB << 20,
			Partitions: s.Kafka.Partitions, Topics: s.foreignNames(), Groups: s.brokerGroups(), Logger: st.log,
		})
		return err
	})
	g.Go(func() (err error) {
		st.engine, err = engine.Start(ctx, engine.Options{
			Dir: engineDir(s), Lib: lib, MemoryBytes: s.Engine.MemoryMB << 20, NativePort: s.Engine.NativePort, HTTPPort: s.Engine.HTTPPort, Logger: st.log,
			Private: []string{"interaction_texts", "interaction_users", "texts_held", "erasures", "texts_erased", "api_keys"}, // dashboards need figures, not people's words
			Bound:   store.TenantTables, Common: store.CommonTables,
			Tenants: s.Engine.GrafanaTenants, Shared: dashboards.SharedTables, Filtered: dashboards.TenantTables,
			OnRestart: func(error) { st.metrics.EngineRestarted() },
		})
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	st.metrics.FollowBroker(st.broker.Size, st.broker.Cap)
	for _, f := range s.folders() {
		st.metrics.FollowDisk(f.name, f.free)
	}
	st.kafka.Brokers = []string{st.broker.Addr()}
	st.chconfig = st.engine.Config(engine.Writer)
	return nil
}

// connect builds producer, pipeline and jobs over the topics and tables of reach.
func (st *stack) connect(ctx context.Context) error {
	s := st.settings
	var err error
	if st.has(roleAPI) || st.has(rolePipeline) {
		if st.producer, err = kafkaconn.NewProducer(st.kafka, kafkaconn.DefaultProducerOptions()); err != nil {
			return err
		}
	}
	if st.engine != nil {
		if err = st.engine.ShowTenants(ctx); err != nil {
			return err
		}
	}
	if err = st.openReader(); err != nil {
		return err
	}
	if err = st.await(ctx, st.theStore(), nil, func() error { return st.noteRules(ctx, st.analyzer.Analyzer()) }); err != nil {
		return err
	}
	st.decisions = &decisionLog{open: st.openArbiter}
	if st.publisher, err = stream.New(st.kafka, stream.DefaultConfig(), stream.Options{Group: s.Kafka.Group, OnError: func(op string, _ error) { st.metrics.BrokerError(op) }}); err != nil {
		return err
	}
	if st.remediates() || st.has(roleJobs) {
		if st.remedy, err = newRemedy(s, st.conn, st.chconfig.Database, st.kafka, st.metrics, st.log); err != nil { //nolint:contextcheck // closing a publisher has a limit of its own
			return err
		}
	}
	if st.has(roleAPI) || st.has(roleJobs) {
		if err = st.startGates(); err != nil {
			return err
		}
	}
	if st.judges() || s.Judge.on() && (st.has(rolePipeline) || st.has(roleJobs) || st.has(roleAPI)) {
		if st.judge, err = st.newJudge(); err != nil { //nolint:contextcheck // closing a publisher has a limit of its own
			return err
		}
	}
	if st.has(roleJobs) && s.Jobs.Enabled {
		if err = st.startJobs(); err != nil {
			return err
		}
	}
	if st.has(roleAPI) {
		if err = st.startGraphQL(); err != nil {
			return err
		}
	}
	sink, err := st.sink()
	if err != nil {
		return err
	}
	if sink.Seal == nil {
		st.log.Info("seals are not signed: who can write to the store can alter what it holds together with its seals; seal.key_file signs them")
	}
	if !st.has(rolePipeline) {
		return nil
	}
	if st.engine != nil {
		sink.Nice = insertNice
	}
	topics, err := s.interactionTopics()
	if err != nil {
		return &settingsError{err}
	}
	keep, err := newMasking(s)
	if err != nil {
		return err
	}
	for _, b := range topics {
		source, err := kafka.New(st.kafka, s.sourceOf(b), kafka.Options{Logger: st.log, OnError: func(op string, _ error) { st.metrics.BrokerError(op) }})
		if err != nil {
			return err
		}
		p, err := pipeline.New(s.pipelineConfigOf(len(topics)), pipeline.Parts{
			Source: source, Decode: s.decoderOf(b).Decode, Analyze: st.analyze, Keep: keep,
			Store: clickhouse.New(st.conn, st.chconfig.Database, sink), Publisher: st.publisher,
			Ask: st.judge.ask(), Observer: st.observer(), Logger: st.log,
		})
		if err != nil {
			return err
		}
		st.pipelines = append(st.pipelines, topicPipeline{p, b.topic})
	}
	st.metrics.Follow(st.progress)
	return st.openCalls(sink)
}

// How far the engine's work steps back behind the queries of people where all share one machine's processors.
// Inserts: a list then takes half as long while a backlog is taken in. Jobs read whole days and step back behind
// inserts too, else they would hold up the pipeline. Without the right to change priorities (CAP_SYS_NICE) neither
// has an effect, but that of one thread for each statement of a job.
const (
	insertNice = 10
	jobsNice   = 15
)

// openJobs opens the connection of the jobs.
func (st *stack) openJobs() (err error) {
	cfg := st.chconfig
	if st.engine != nil {
		cfg.Settings = map[string]any{"os_thread_priority": jobsNice, "max_threads": 1}
	}
	st.jobsConn, err = chconn.Open(cfg)
	return err
}

// serve runs until ctx ends and then drains: doors first, then the pipeline and the jobs.
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
		st.sayEnding(ctx, gctx)
		return st.shut(context.WithoutCancel(gctx))
	})
	for _, p := range st.pipelines {
		g.Go(func() error { return p.Run(gctx) })
	}
	if st.calls != nil {
		st.calls.run(gctx, g)
	}
	if st.has(rolePipeline) {
		g.Go(func() error { st.projectDecisions(gctx); return nil })
	}
	if st.gates != nil {
		g.Go(func() error { st.gates.Run(gctx); return nil })
	}
	if st.remediates() {
		g.Go(func() error { st.remediate(gctx); return nil })
	}
	if st.judges() {
		g.Go(func() error { st.answerJudge(gctx); return nil })
	}
	if st.jobs != nil {
		g.Go(func() error { return st.jobs.Lead(gctx) })
	}
	if st.settings.Rules.Dir != "" {
		g.Go(func() error { st.followRules(gctx); return nil })
	}
	err := g.Wait()
	if err != nil {
		st.gaveUp = append(st.gaveUp, err.Error())
	}
	return err
}

// sayEnding tells that the process ends, and why.
func (st *stack) sayEnding(ctx, gctx context.Context) {
	st.endBegan = time.Now()
	if ctx.Err() != nil {
		st.log.Info("stopping: doors close, what was taken is finished", "why", context.Cause(ctx).Error())
		return
	}
	st.log.Error("stopping, for a part of the process failed: doors close, what was taken is finished", "error", context.Cause(gctx).Error())
}

// sayEnded tells how the end went.
func (st *stack) sayEnded() {
	switch took := time.Since(st.endBegan).Round(time.Millisecond).String(); {
	case st.endBegan.IsZero(): // it never served
	case len(st.gaveUp) == 0:
		st.log.Info("stopped: all that was taken is finished", "took", took)
	default:
		st.log.Warn("stopped: not all that was taken could be finished", "given_up", st.gaveUp, "took", took)
	}
}

// How long requests may take to end when the process does; then calls of models are ended, which may take longer, and have a little
// time to be recorded.
const (
	requestsEnd = 8 * time.Second
	callsEnd    = 2 * time.Second
)

// shut ends the doors.
func (st *stack) shut(ctx context.Context) error {
	patience, cancel := context.WithTimeout(ctx, requestsEnd)
	defer cancel()
	err := st.server.Shutdown(patience)
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if st.gateway != nil {
		st.log.Info("calls of the gateway that did not end are ended", "after", requestsEnd.String())
		st.gateway.Stop()
	}
	short, cancelShort := context.WithTimeout(ctx, callsEnd)
	defer cancelShort()
	if err = st.server.Shutdown(short); errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("http: requests did not end within %v and were cut off", requestsEnd+callsEnd)
	}
	return err
}

// close releases what start opened, in reverse order; it is safe on a half-started stack.
func (st *stack) close(ctx context.Context) {
	defer st.sayEnded()
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	warn := func(what string, err error) {
		if err != nil {
			st.log.Warn("close failed", "what", what, "error", err)
			st.gaveUp = append(st.gaveUp, what)
		}
	}
	if st.hup != nil {
		signal.Stop(st.hup)
	}
	if st.server == nil && st.listener != nil {
		_ = st.listener.Close()
	}
	if st.graphql != nil {
		st.graphql.close()
	}
	if st.gateway != nil {
		warn("gateway", st.gateway.Close(ctx))
	}
	warn("guard", st.stopGuard(ctx))
	if st.gates != nil {
		st.gates.close()
	}
	if st.producer != nil {
		warn("producer", st.producer.Close(ctx))
	}
	if st.calls != nil {
		warn("dead letters", st.calls.letters.Close(ctx))
	}
	if st.remedy != nil {
		warn("remediation", st.remedy.close()) //nolint:contextcheck // it has a limit of its own
	}
	if st.judge != nil {
		warn("judge", st.judge.close()) //nolint:contextcheck // it has a limit of its own
	}
	if st.asking != nil {
		st.asking.close()
	}
	if st.decisions != nil {
		warn("decisions", st.decisions.close(ctx))
	}
	warn("evaluations", closeEvaluations(ctx, st.evaluations))
	if st.publisher != nil {
		warn("publisher", st.publisher.Close(ctx))
	}
	if st.auth != nil {
		st.auth.Close()
	}
	if st.readerConn != nil {
		warn("clickhouse", st.readerConn.Close())
	}
	if st.jobsConn != nil {
		warn("clickhouse", st.jobsConn.Close())
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

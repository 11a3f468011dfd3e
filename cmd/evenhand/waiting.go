package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/internal/wait"
)

// awaited is a server outside that a start waits for.
type awaited struct {
	name    string // as people call it
	check   string // its name at /readyz
	key     string // the setting that says where it is
	at      []string
	waits   string // what the log says while it is away
	answers string // and when it has come
	mayCome func(error) bool
	cutOff  string // what may be amiss where it closes connections without a word
}

func (st *stack) theBroker() awaited {
	return awaited{name: "Kafka", check: "broker", key: "kafka.brokers", at: st.kafka.Brokers, mayCome: st.mayCome,
		waits: "waiting for Kafka: no broker of kafka.brokers can be used", answers: "Kafka answers",
		cutOff: "a listener closes the connection: does it want kafka.tls or kafka.sasl_mechanism, or neither?"}
}

func (st *stack) theStore() awaited {
	return awaited{name: "ClickHouse", check: "store", key: "clickhouse.addr", at: st.chconfig.Addr, mayCome: st.storeMayCome,
		waits: "waiting for ClickHouse: no server of clickhouse.addr can be used", answers: "ClickHouse answers"}
}

// reach makes topics and tables, and refuses doors that nobody could come in by. Servers that are away or hang are waited
// for until ctx ends: /readyz answers 503 meanwhile. What waiting does not mend, such as a host that nobody knows or
// credentials that are refused, is an error at once, and no other server is waited for with it. looked is called for
// Kafka and for ClickHouse, as soon as each answered or is waited for.
func (st *stack) reach(ctx context.Context, embedded bool, looked func()) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return st.await(gctx, st.theBroker(), looked, func() error { return st.ensureTopics(gctx) })
	})
	g.Go(func() error {
		// A migration that began is not broken off for a fault of Kafka.
		return st.await(gctx, st.theStore(), looked, func() error { return st.ensureTables(ctx, embedded) })
	})
	return g.Wait()
}

func (st *stack) ensureTopics(ctx context.Context) error {
	done, err := kafkaconn.Ensure(ctx, st.kafka, st.settings.topics(), st.settings.Kafka.Replication)
	if err != nil && st.mayCome(err) {
		return err
	}
	for _, w := range done.Warnings {
		st.log.Warn("a topic is not as it should be", "mend", w)
	}
	return err
}

// ensureTables migrates and opens the store.
func (st *stack) ensureTables(ctx context.Context, embedded bool) (err error) {
	if err = migrateStore(ctx, st.chconfig, st.settings.schema(embedded)); err != nil {
		return err
	}
	if st.conn, err = chconn.Open(st.chconfig); err != nil {
		return err
	}
	return st.letsSomebodyIn(ctx, embedded)
}

// await tries until it works, what waiting does not mend comes up, or ctx ends.
func (st *stack) await(ctx context.Context, a awaited, looked func(), try func() error) error {
	var said time.Time
	for fails := 1; ; fails++ {
		err := try()
		if err != nil && !a.mayCome(err) {
			return err
		}
		if fails == 1 && looked != nil {
			looked()
		}
		if err == nil {
			if fails > 1 {
				st.notReady.came(a)
				st.log.Info(a.answers)
			}
			return nil
		}
		if fails == 1 {
			st.notReady.waits(a)
		}
		if time.Since(said) > time.Minute && ctx.Err() == nil {
			said = time.Now()
			log := st.log.With("at", strings.Join(a.at, ","), "error", err)
			if a.cutOff != "" && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
				log = log.With("mend", a.cutOff)
			}
			log.Warn(a.waits)
		}
		if !wait.For(ctx, wait.Backoff(100*time.Millisecond, fails)) {
			return ctx.Err()
		}
	}
}

// mayCome tells whether brokers that could not be used may be there later.
func (st *stack) mayCome(err error) bool {
	return st.broker == nil && audit.KindOf(err) == audit.KindUnavailable && !unknownHost(err)
}

// storeMayCome tells whether servers that could not be used may be there later: they are away, or say themselves that they
// cannot now. Migrations class errors for their callers, so what lies under them is looked at.
func (st *stack) storeMayCome(err error) bool {
	var (
		server      *clickhouse.Exception
		certificate *tls.CertificateVerificationError
		plain       tls.RecordHeaderError
		handshake   *net.OpError
	)
	switch {
	case st.engine != nil || unknownHost(err), errors.As(err, &certificate), errors.As(err, &plain),
		errors.As(err, &handshake) && strings.HasSuffix(handshake.Op, " error"): // an alert of TLS: "remote error", "local error"
		return false
	case errors.As(err, &server):
		return chconn.Class(server) == audit.KindUnavailable
	}
	return chconn.Lost(err)
}

func unknownHost(err error) bool {
	var host *net.DNSError
	return errors.As(err, &host) && host.IsNotFound
}

// notReady answers on the process's port from when the start first waits until it is over: alive, not ready.
type notReady struct {
	port    *net.TCPListener // nil: nobody can ask
	metrics http.Handler

	mu   sync.Mutex
	away map[string]awaited // by check
	stop func()             // nil: it does not answer
}

// waits tells that something is waited for.
func (n *notReady) waits(a awaited) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.away == nil {
		n.away = map[string]awaited{}
	}
	n.away[a.check] = a
	if n.stop == nil && n.port != nil {
		n.stop = n.serve()
	}
}

// came tells that it is waited for no longer.
func (n *notReady) came(a awaited) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.away, a.check)
}

// end gives the port back.
func (n *notReady) end() {
	n.mu.Lock()
	stop := n.stop
	n.stop = nil
	n.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// why is the error of a check, nil where it is not waited for.
func (n *notReady) why(check string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if a, ok := n.away[check]; ok {
		return fmt.Errorf("waiting for %s: %s", a.key, strings.Join(a.at, ","))
	}
	return nil
}

// says is the answer of the doors.
func (n *notReady) says() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for _, check := range slices.Sorted(maps.Keys(n.away)) {
		names = append(names, n.away[check].name)
	}
	if len(names) == 0 {
		return "this process starts; try again after the time in Retry-After"
	}
	return "this process starts and waits for " + strings.Join(names, " and ") + "; try again after the time in Retry-After"
}

func (n *notReady) serve() (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", obs.Healthz())
	mux.Handle("GET /readyz", obs.Readyz([]obs.Check{
		{Name: "broker", Run: func(context.Context) error { return n.why("broker") }},
		{Name: "store", Run: func(context.Context) error { return n.why("store") }},
		{Name: "start", Run: func(context.Context) error { return errors.New("this process starts") }},
	}))
	mux.Handle("GET /metrics", n.metrics)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		reply.Fail(w, reply.NewFault(http.StatusServiceUnavailable, reply.Unavailable, n.says(), nil))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lent{n.port}) }()
	return func() {
		_ = server.Close()
		<-done
		_ = n.port.SetDeadline(time.Time{})
	}
}

// lent is a listener that is given back: closing it ends accepting, and the port stays taken.
type lent struct{ *net.TCPListener }

func (l lent) Close() error { return l.SetDeadline(time.Now()) }

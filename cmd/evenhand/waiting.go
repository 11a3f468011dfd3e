package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/internal/reply"
	"github.com/evenhand/evenhand/internal/wait"
)

// ensureTopics makes the topics. Brokers that are away or hang are waited for until ctx ends: /readyz answers 503
// meanwhile. What waiting does not mend, such as a host that nobody knows or credentials that are refused, is an error
// at once.
func (st *stack) ensureTopics(ctx context.Context) error {
	var stopSaying func()
	var said time.Time
	for fails := 1; ; fails++ {
		done, err := kafkaconn.Ensure(ctx, st.kafka, st.settings.topics(), st.settings.Kafka.Replication)
		if err == nil || !st.mayCome(err) {
			for _, w := range done.Warnings {
				st.log.Warn("a topic is not as it should be", "mend", w)
			}
			if stopSaying != nil {
				stopSaying()
				if err == nil {
					st.log.Info("Kafka answers")
				}
			}
			return err
		}
		if stopSaying == nil {
			stopSaying = st.sayNotReady()
		}
		if time.Since(said) > time.Minute && ctx.Err() == nil {
			said = time.Now()
			st.log.Warn("waiting for Kafka: no broker of kafka.brokers can be used", "brokers", strings.Join(st.kafka.Brokers, ","), "error", err)
		}
		if !wait.For(ctx, wait.Backoff(100*time.Millisecond, fails)) {
			stopSaying()
			return ctx.Err()
		}
	}
}

// mayCome tells whether brokers that could not be used may be there later.
func (st *stack) mayCome(err error) bool {
	var host *net.DNSError
	return st.broker == nil && audit.KindOf(err) == audit.KindUnavailable && !(errors.As(err, &host) && host.IsNotFound)
}

// sayNotReady answers on the process's port as long as it cannot serve yet: alive, not ready. The returned function
// gives the port back.
func (st *stack) sayNotReady() (stop func()) {
	port, ok := st.listener.(*net.TCPListener)
	if !ok {
		return func() {}
	}
	mux := http.NewServeMux()
	mux.Handle("GET /healthz", obs.Healthz())
	mux.Handle("GET /readyz", obs.Readyz([]obs.Check{{Name: "broker", Run: func(context.Context) error {
		return fmt.Errorf("waiting for kafka.brokers: %s", strings.Join(st.kafka.Brokers, ","))
	}}}))
	mux.Handle("GET /metrics", st.metrics.Handler())
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		reply.Fail(w, reply.NewFault(http.StatusServiceUnavailable, reply.Unavailable, "this process starts and waits for Kafka; try again after the time in Retry-After", nil))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(lent{port}) }()
	return func() {
		_ = server.Close()
		<-done
		_ = port.SetDeadline(time.Time{})
	}
}

// lent is a listener that is given back: closing it ends accepting, and the port stays taken.
type lent struct{ *net.TCPListener }

func (l lent) Close() error { return l.SetDeadline(time.Now()) }

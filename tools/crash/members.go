package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/failpoint"
)

const (
	sessionTimeout = time.Second
	overdue        = 30 * time.Second // an armed point that nobody came by
	mostArmed      = 2                // at a time: somebody must get on with the work
)

// members are the processes of the pipeline. Each of some slots always runs one; when it ends, the
// next one is started, armed with the next failpoint that waits.
type members struct {
	w *world

	mu      sync.Mutex
	waiting []string  // failpoints
	armed   int       // members that run with one
	hit     time.Time // of the last failpoint
	running []*process
	slots   sync.WaitGroup
}

// want queues failpoints.
func (m *members) want(points ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiting = append(m.waiting, points...)
}

func (m *members) next() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) == 0 || m.armed >= mostArmed {
		return ""
	}
	p := m.waiting[0]
	m.waiting = m.waiting[1:]
	m.armed++
	return p
}

// settled tells that every failpoint that was wanted has been hit.
func (m *members) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting)+m.armed == 0
}

// quiet tells that no failpoint was hit for a while.
func (m *members) quiet() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.hit) > overdue/2
}

// slot runs one member after the other until ctx ends.
func (m *members) slot(ctx context.Context) {
	for ctx.Err() == nil {
		point := m.next()
		hit := m.once(ctx, point)
		if point != "" {
			m.mu.Lock()
			m.armed--
			if hit {
				m.hit = time.Now()
			} else {
				m.waiting = append(m.waiting, point)
			}
			m.mu.Unlock()
		}
	}
}

// once runs one member to its end; it tells whether the failpoint ended it.
func (m *members) once(ctx context.Context, point string) (hit bool) {
	began := time.Now()
	skip := rand.IntN(3)
	if point == failpoint.Rebalance || point == failpoint.Republished { // rare enough
		skip = 0
	}
	p, err := m.start(point, skip)
	if err != nil {
		m.w.log.Error("a member does not start", "error", err)
		rest(ctx, time.Second)
		return false
	}
	var late <-chan time.Time
	if point != "" {
		t := time.NewTimer(overdue)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-p.exited:
	case <-late:
		m.w.killed("member", p.kill)
	case <-ctx.Done():
		p.end(10 * time.Second)
	}
	m.forget(p)
	switch {
	case p.killedItself() && point != "":
		m.w.killed("failpoint:"+point, func() {})
		return true
	case !p.ours.Load():
		m.w.report.exited()
		rest(ctx, max(0, time.Second-time.Since(began)))
	}
	return false
}

// start begins a process of the pipeline.
func (m *members) start(point string, skip int) (*process, error) {
	cmd := exec.Command(m.w.opt.bin, "run", "--roles", "pipeline", "--http", "127.0.0.1:0")
	cmd.Env = append(m.w.env(), "EVENHAND_CLICKHOUSE_ADDR="+m.w.proxy.Listen)
	if point != "" {
		cmd.Env = append(cmd.Env, "FAILPOINT="+point, "FAILPOINT_SKIP="+strconv.Itoa(skip))
	}
	p, err := m.w.launch(cmd, "members")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = append(m.running, p)
	return p, nil
}

func (m *members) forget(p *process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = slices.DeleteFunc(m.running, func(x *process) bool { return x == p })
}

// any picks a running member, nil when there is none.
func (m *members) any() *process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.running) == 0 {
		return nil
	}
	return m.running[rand.IntN(len(m.running))]
}

// env is what every evenhand process of the test gets: nothing of the caller's settings.
func (w *world) env() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "EVENHAND_") && !strings.HasPrefix(kv, "FAILPOINT") && !strings.HasPrefix(kv, "PORT=") {
			env = append(env, kv)
		}
	}
	ch := w.engine.Endpoint(engine.Writer)
	return append(env,
		"EVENHAND_KAFKA_BROKERS="+strings.Join(w.cluster.addrs(), ","), fmt.Sprint("EVENHAND_KAFKA_PARTITIONS=", w.opt.partitions),
		fmt.Sprint("EVENHAND_KAFKA_SESSION_TIMEOUT=", sessionTimeout), "EVENHAND_KAFKA_REBALANCE_TIMEOUT=6s",
		"EVENHAND_CLICKHOUSE_ADDR="+ch.Native, "EVENHAND_CLICKHOUSE_USERNAME="+string(ch.User), "EVENHAND_CLICKHOUSE_PASSWORD="+ch.Password,
		"EVENHAND_TENANT_DEFAULT="+tenant, "EVENHAND_PIPELINE_BATCH_AGE=150ms", "EVENHAND_PIPELINE_BATCH_ROWS=3000", "EVENHAND_PIPELINE_DRAIN_TIMEOUT=3s",
		"EVENHAND_CLASSIFIER_ENCODER=off", // what is tested is delivery; on a slow machine it would leave the faults no time
		"EVENHAND_LOG_LEVEL=info", "EVENHAND_LOG_FORMAT=json", "GOMAXPROCS=2",
	)
}

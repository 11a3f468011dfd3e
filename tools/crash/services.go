package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/evenhand/evenhand/internal/embedded/broker"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
)

// cluster is a broker, or three, that can be killed and paused.
type cluster interface {
	addrs() []string
	kill(ctx context.Context) error                   // kill -9 of one broker, and start it again
	pause(ctx context.Context, d time.Duration) error // one broker hangs for so long
	close()
}

const brokerCommand = "broker"

// brokerMain is the embedded broker as a process of its own: it can be killed without its users.
func brokerMain(args []string) int {
	flags := flag.NewFlagSet(brokerCommand, flag.ContinueOnError)
	dir := flags.String("dir", "", "folder of the log")
	port := flags.Int("port", 0, "port on 127.0.0.1")
	partitions := flags.Int("partitions", 4, "of the topics that carry traffic")
	if flags.Parse(args) != nil {
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	opt := broker.DefaultOptions(*dir)
	opt.Port, opt.Partitions = *port, *partitions
	opt.TrimEvery = time.Hour // so that the check finds in the log all that was sent
	opt.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	b, err := broker.Start(ctx, opt)
	if err == nil {
		err = brokertest.ShortSessions(ctx, b.Addr(), sessionTimeout) // members are missed soon: the rounds are short
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println(b.Addr())
	<-ctx.Done()
	_ = b.Close(context.WithoutCancel(ctx))
	return 0
}

// embedded is the embedded broker in a process.
type embedded struct {
	w    *world
	addr string
	proc *process
}

func startEmbedded(ctx context.Context, w *world) (*embedded, error) {
	e := &embedded{w: w}
	return e, e.start(ctx)
}

func (e *embedded) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	port := "0"
	if e.addr != "" {
		_, port, _ = net.SplitHostPort(e.addr)
	}
	cmd := exec.Command(self, brokerCommand, "-dir", filepath.Join(e.w.opt.dir, "broker"), "-port", port, "-partitions", strconv.Itoa(e.w.opt.partitions))
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if e.proc, err = e.w.launch(cmd, "broker"); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return errors.New("the embedded broker did not start; see broker.log")
	}
	e.addr = strings.TrimSpace(line)
	return nil
}

func (e *embedded) addrs() []string { return []string{e.addr} }

func (e *embedded) kill(ctx context.Context) error {
	e.proc.kill()
	return e.start(ctx)
}

func (e *embedded) pause(ctx context.Context, d time.Duration) error {
	return e.proc.pause(ctx, d)
}

func (e *embedded) close() { e.proc.end(5 * time.Second) }

// kafka is tools/kafka/kafka.sh.
type kafka struct {
	w      *world
	port   string
	verb   string // start or start3
	list   []string
	script string
	next   int
}

func startKafka(ctx context.Context, w *world, verb string) (*kafka, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(20000 + l.Addr().(*net.TCPAddr).Port%10000)
	_ = l.Close()
	k := &kafka{w: w, port: port, verb: verb}
	if k.script, err = filepath.Abs("tools/kafka/kafka.sh"); err != nil {
		return nil, err
	}
	out, err := k.call(ctx, verb)
	k.list = strings.Split(out, ",")
	return k, err
}

func (k *kafka) call(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.script, args...)
	cmd.Env = append(os.Environ(), "KAFKA_PORT="+k.port, "KAFKA_WAIT=180", "KAFKA_HEAP=320m",
		fmt.Sprintf("KAFKA_EXTRA=group.min.session.timeout.ms=%d", sessionTimeout.Milliseconds()))
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kafka.sh %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), err
}

func (k *kafka) addrs() []string { return k.list }

// one picks the broker whose turn it is.
func (k *kafka) one() string {
	k.next++
	return strconv.Itoa(1 + k.next%len(k.list))
}

func (k *kafka) kill(ctx context.Context) error {
	if _, err := k.call(ctx, "kill", k.one()); err != nil {
		return err
	}
	if len(k.list) > 1 { // two are left, and go on
		rest(ctx, 12*time.Second)
	}
	_, err := k.call(ctx, k.verb)
	return err
}

func (k *kafka) pause(ctx context.Context, d time.Duration) error {
	n := k.one()
	if _, err := k.call(ctx, "pause", n); err != nil {
		return err
	}
	rest(ctx, d)
	_, err := k.call(context.WithoutCancel(ctx), "resume", n)
	return err
}

func (k *kafka) close() { _, _ = k.call(context.Background(), "wipe") }

// newProxy stands between the members and the store.
func newProxy(upstream string) (*toxiproxy.Proxy, error) {
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.New(io.Discard))
	p := toxiproxy.NewProxy(server, "store", "127.0.0.1:0", upstream)
	return p, p.Start()
}

// rest waits; it returns early when ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

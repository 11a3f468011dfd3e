package broker

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// childEnv makes the test binary a broker on a folder, so that it can be killed.
const childEnv = "EVENHAND_TEST_BROKER_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		if err := child(dir); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// child serves until its standard input ends. Writing beyond a limit on the size of files must be an
// error, as a full disk is, not a signal.
func child(dir string) error {
	signal.Ignore(syscall.SIGXFSZ)
	opt := DefaultOptions(dir)
	opt.Partitions, opt.TrimEvery = 1, 20*time.Millisecond
	b, err := Start(context.Background(), opt)
	if err != nil {
		return err
	}
	fmt.Println("addr", b.Addr())
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return b.Close(context.Background())
}

type process struct {
	*exec.Cmd
	conn kafkaconn.Config
}

func spawn(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	in, err := cmd.StdinPipe() // its end tells the child to stop, should this process die
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd}
	t.Cleanup(func() { _ = in.Close(); p.kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "addr ")
	if err != nil || !ok {
		t.Fatalf("the child says %q %v", line, err)
	}
	p.conn = connTo(addr)
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

func connTo(addr string) kafkaconn.Config {
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = []string{addr}
	return conn
}

func start(t *testing.T, opt Options) *Broker {
	t.Helper()
	b, err := Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, b) })
	return b
}

func closeNow(t *testing.T, b *Broker) {
	t.Helper()
	if err := b.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func oneOf(dir string) Options {
	opt := DefaultOptions(dir)
	opt.Partitions, opt.TrimEvery = 1, time.Hour
	return opt
}

func produce(t *testing.T, conn kafkaconn.Config, topic string, values ...string) error {
	t.Helper()
	opt := kafkaconn.DefaultProducerOptions()
	opt.Patience = 2 * time.Second
	p, err := kafkaconn.NewProducer(conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	msgs := make([]kafka.Message, len(values))
	for i, v := range values {
		msgs[i] = kafka.Message{Topic: topic, Value: []byte(v), Time: time.Unix(1e9, 0)}
	}
	return p.Produce(t.Context(), msgs)
}

func client(t *testing.T, conn kafkaconn.Config) *kafka.Client {
	t.Helper()
	cl, release, err := conn.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)
	return cl
}

func bounds(t *testing.T, conn kafkaconn.Config, topic string) (first, end int64) {
	t.Helper()
	res, err := client(t, conn).ListOffsets(t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0)}}})
	if err != nil {
		t.Fatal(err)
	}
	p := res.Topics[topic][0]
	return p.FirstOffset, p.LastOffset
}

// values reads partition 0 from an offset to its end.
func values(t *testing.T, conn kafkaconn.Config, topic string, from int64) (out []string) {
	t.Helper()
	_, end := bounds(t, conn, topic)
	cl := client(t, conn)
	for next := from; next < end; {
		res, err := cl.Fetch(t.Context(), &kafka.FetchRequest{Topic: topic, Offset: next, MinBytes: 1, MaxBytes: 8 << 20, MaxWait: time.Second})
		if err == nil {
			err = res.Error
		}
		if err != nil {
			t.Fatalf("fetch %d: %v", next, err)
		}
		for {
			r, err := res.Records.ReadRecord()
			if err != nil {
				break
			}
			v, err := kafka.ReadAll(r.Value)
			if err != nil {
				t.Fatal(err)
			}
			if r.Offset >= next {
				out, next = append(out, string(v)), r.Offset+1
			}
		}
	}
	return out
}

// commit moves the pipeline's position.
func commit(t *testing.T, conn kafkaconn.Config, offset int64) {
	t.Helper()
	commitOf(t, conn, kafkaconn.PipelineGroup, kafkaconn.Interactions, offset)
}

func commitOf(t *testing.T, conn kafkaconn.Config, group, topic string, offset int64) {
	t.Helper()
	res, err := client(t, conn).OffsetCommit(t.Context(), &kafka.OffsetCommitRequest{
		GroupID: group, GenerationID: -1, Topics: map[string][]kafka.OffsetCommit{topic: {{Offset: offset}}},
	})
	if err == nil {
		err = res.Topics[topic][0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls for what another process does.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func numbered(from, to int) (out []string) {
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("record %d", i))
	}
	return out
}

package broker

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func TestReopenKeepsAll(t *testing.T) {
	dir := t.TempDir()
	b := start(t, oneOf(dir))
	if err := produce(t, connTo(b.Addr()), kafkaconn.Interactions, numbered(0, 100)...); err != nil {
		t.Fatal(err)
	}
	commit(t, connTo(b.Addr()), 40)
	closeNow(t, b)
	b = start(t, oneOf(dir))
	conn := connTo(b.Addr())
	if got := values(t, conn, kafkaconn.Interactions, 40); len(got) != 60 || got[0] != "record 40" {
		t.Fatalf("after reopening %d records from 40 on", len(got))
	}
	if first, end := bounds(t, conn, kafkaconn.Interactions); first != 40 || end != 100 {
		t.Fatalf("the log holds [%d,%d), want [40,100): trimmed up to the commit at the start", first, end)
	}
}

// A disk that stays full is told once a minute, not once a write.
func TestComplaintsAreToldOnceAMinute(t *testing.T) {
	var said bytes.Buffer
	at := time.Now()
	l := &logBridge{log: slog.New(slog.NewTextHandler(&said, nil)), now: func() time.Time { return at }}
	for _, step := range []struct {
		later time.Duration
		more  string
	}{{0, ""}, {time.Minute, "more_since_the_last=99"}, {-time.Hour, "more_since_the_last=99"}} {
		at = at.Add(step.later)
		said.Reset()
		for i := range 100 {
			l.Logf(kfake.LogLevelWarn, "persist batch %s-%d: %v", kafkaconn.Interactions, i, syscall.ENOSPC)
		}
		l.Logf(kfake.LogLevelError, "another: %v", syscall.EIO)
		l.Logf(kfake.LogLevelInfo, "chatter")
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], `persist batch llm.interactions-0: no space left on device`) || !strings.Contains(lines[0], step.more) ||
			step.more == "" && strings.Contains(lines[0], "more") || !strings.Contains(lines[1], "level=ERROR") || strings.Contains(lines[1], "more") {
			t.Errorf("%v later:\n%s", step.later, said.String())
		}
	}
}

func TestOneOwner(t *testing.T) {
	dir := t.TempDir()
	start(t, oneOf(dir))
	_, err := Start(t.Context(), oneOf(dir))
	want := fmt.Sprintf("broker.dir: %s is in use by process %d; stop it, or choose another folder", dir, os.Getpid())
	if err == nil || !strings.Contains(err.Error(), want) || audit.KindOf(err) != audit.KindInvalid {
		t.Fatalf("a second broker: %v, want %q", err, want)
	}
}

func TestPortTaken(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	opt := oneOf(t.TempDir())
	opt.Port = ln.Addr().(*net.TCPAddr).Port
	_, err = Start(t.Context(), opt)
	want := fmt.Sprintf("broker.port: 127.0.0.1:%d is taken by another process; choose another port, or 0 for a free one", opt.Port)
	if err == nil || !strings.Contains(err.Error(), want) || audit.KindOf(err) != audit.KindInvalid {
		t.Fatalf("%v, want %q", err, want)
	}
	opt.Port = 0 // and the folder is free again
	b := start(t, opt)
	if host, port, _ := net.SplitHostPort(b.Addr()); host != "127.0.0.1" || port == "0" {
		t.Fatalf("listens on %s", b.Addr())
	}
}

func TestEnsureFindsNothingToMend(t *testing.T) {
	b := start(t, oneOf(t.TempDir()))
	done, err := kafkaconn.Ensure(t.Context(), connTo(b.Addr()), kafkaconn.Topics(1), 1)
	if err != nil || len(done.Created)+len(done.Warnings) > 0 {
		t.Fatalf("%+v %v", done, err)
	}
}

// TestKillWhileWriting kills the broker with writes under way: what was acknowledged is there.
func TestKillWhileWriting(t *testing.T) {
	dir := t.TempDir()
	acked := map[string]bool{}
	total := 0
	for round := range 3 {
		p := spawn(t, dir)
		opt := kafkaconn.DefaultProducerOptions()
		opt.Patience = 200 * time.Millisecond
		prod, err := kafkaconn.NewProducer(p.conn, opt)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		const callers = 4
		results := make(chan []string, 1024)
		for c := range callers {
			go func() {
				for i := 0; ; i++ {
					batch := make([]string, 20)
					msgs := make([]kafka.Message, len(batch))
					for j := range batch {
						batch[j] = fmt.Sprintf("%d/%d/%d/%d %s", round, c, i, j, strings.Repeat("x", 200))
						msgs[j] = kafka.Message{Topic: kafkaconn.Interactions, Value: []byte(batch[j])}
					}
					if prod.Produce(ctx, msgs) != nil {
						results <- nil
						return
					}
					results <- batch
				}
			}()
		}
		killed, ended := false, 0
		for n := 0; ended < callers; {
			batch := <-results
			if batch == nil {
				ended++
				continue
			}
			for _, v := range batch {
				acked[v] = true
			}
			if n++; n >= 60 && !killed {
				killed = true
				p.kill()
				cancel() // what is not answered by now never will be
			}
		}
		cancel()
		_ = prod.Close(context.Background())
		if len(acked) == total {
			t.Fatal("nothing was acknowledged in this round")
		}
		total = len(acked)
	}
	b := start(t, oneOf(dir))
	found := map[string]bool{}
	for _, v := range values(t, connTo(b.Addr()), kafkaconn.Interactions, 0) {
		found[v] = true
	}
	for v := range acked {
		if !found[v] {
			t.Fatalf("an acknowledged record is lost (%d acknowledged, %d found)", len(acked), len(found))
		}
	}
	t.Logf("%d acknowledged over three kills, all there", len(acked))
}

// TestKillAfterTrim: everything is consumed and trimmed, the broker is killed; offsets go on and the
// consumer misses nothing.
func TestKillAfterTrim(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, dir)
	if err := produce(t, p.conn, kafkaconn.Interactions, numbered(0, 50)...); err != nil {
		t.Fatal(err)
	}
	if err := produce(t, p.conn, kafkaconn.Interactions, numbered(50, 60)...); err != nil {
		t.Fatal(err)
	}
	commit(t, p.conn, 60)
	eventually(t, "trimmed up to the last record", func() bool {
		first, end := bounds(t, p.conn, kafkaconn.Interactions)
		if first > 59 {
			t.Fatalf("the last record is gone: [%d,%d)", first, end)
		}
		return first == 59
	})
	p.kill()

	p = spawn(t, dir)
	if err := produce(t, p.conn, kafkaconn.Interactions, numbered(60, 70)...); err != nil {
		t.Fatal(err)
	}
	if got := values(t, p.conn, kafkaconn.Interactions, 60); len(got) != 10 || got[0] != "record 60" || got[9] != "record 69" {
		t.Fatalf("from the position 60 on the consumer reads %q", got)
	}
	if _, end := bounds(t, p.conn, kafkaconn.Interactions); end != 70 {
		t.Fatalf("the log ends at %d, want 70", end)
	}
}

// What one of a topic's groups still waits for stays, however far the other is: tickets go on while the tracker does not
// tell how an issue stands.
func TestTrimWaitsForEveryGroup(t *testing.T) {
	b := start(t, oneOf(t.TempDir()))
	conn := connTo(b.Addr())
	if err := produce(t, conn, kafkaconn.Remediation, numbered(0, 10)...); err != nil {
		t.Fatal(err)
	}
	own := kafkaconn.GroupOf(kafkaconn.Remediation)
	for _, tc := range []struct {
		group          string
		offset, starts int64
	}{{own, 10, 0}, {kafkaconn.RemediationIssues, 4, 4}, {kafkaconn.RemediationIssues, 10, 9}} {
		commitOf(t, conn, tc.group, kafkaconn.Remediation, tc.offset)
		if err := b.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if first, end := bounds(t, conn, kafkaconn.Remediation); first != tc.starts || end != 10 {
			t.Errorf("%s at %d: the log is [%d,%d)", tc.group, tc.offset, first, end)
		}
	}
}

// randomText does not compress.
func randomText(n, seed int) string {
	b := make([]byte, n)
	x := uint64(seed)*2862933555777941757 + 3037000493
	for i := range b {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		b[i] = byte('a' + x%26)
	}
	return string(b)
}

func TestCapRefusesUntilTrimmed(t *testing.T) {
	opt := oneOf(t.TempDir())
	opt.MaxLogBytes = 300 << 10
	b := start(t, opt)
	conn := connTo(b.Addr())
	taken := 0
	var err error
	for ; taken < 100; taken++ {
		if err = produce(t, conn, kafkaconn.Interactions, randomText(20<<10, taken)); err != nil {
			break
		}
	}
	if audit.KindOf(err) != audit.KindOverloaded || !b.Full() || taken < 5 {
		t.Fatalf("after %d records of 20 KB: %v, full %t; want it refused as overloaded", taken, err, b.Full())
	}
	if err := produce(t, conn, kafkaconn.AuditStream, "goes on"); err != nil {
		t.Fatalf("another topic: %v", err)
	}
	if err := b.Trim(t.Context()); err != nil || !b.Full() {
		t.Fatalf("nothing was consumed, but full is %t (%v)", b.Full(), err)
	}
	commit(t, conn, int64(taken))
	if err := b.Trim(t.Context()); err != nil || b.Full() {
		t.Fatalf("all was consumed, but full is %t (%v)", b.Full(), err)
	}
	if err := produce(t, conn, kafkaconn.Interactions, "again"); err != nil {
		t.Fatal(err)
	}
}

// A full log takes interactions again soon after they were consumed, long before the next trim, and what nobody has read stays.
func TestCapOpensWithCommits(t *testing.T) {
	opt := oneOf(t.TempDir())
	opt.MaxLogBytes, opt.TrimEvery = 300<<10, time.Hour
	b := start(t, opt)
	conn := connTo(b.Addr())
	taken := 0
	for ; taken < 100 && !b.Full(); taken++ {
		_ = produce(t, conn, kafkaconn.Interactions, randomText(20<<10, taken))
	}
	taken-- // the one that was refused
	if !b.Full() || taken < 5 {
		t.Fatalf("full %t after %d", b.Full(), taken)
	}
	commit(t, conn, int64(taken-3))
	for deadline := time.Now().Add(20 * time.Second); b.Full() && time.Now().Before(deadline); {
		if err := produce(t, conn, kafkaconn.Interactions, "again"); err == nil {
			break
		}
	}
	if b.Full() {
		t.Error("still full, though most was consumed")
	}
	for _, p := range b.cluster.PartitionInfos(kafkaconn.Interactions) {
		if p.LogStartOffset > int64(taken-3) {
			t.Errorf("begins at %d, and only %d were read", p.LogStartOffset, taken-3)
		}
	}
}

// TestTickTakesTextOffTheDisk: a day later, consumed text is in no file any more.
func TestTickTakesTextOffTheDisk(t *testing.T) {
	dir := t.TempDir()
	opt := oneOf(dir)
	at := time.Now()
	opt.now = func() time.Time { return at }
	b := start(t, opt)
	conn := connTo(b.Addr())
	const text = "a text that must leave the disk"
	if err := produce(t, conn, kafkaconn.Interactions, text); err != nil {
		t.Fatal(err)
	}
	commit(t, conn, 1)
	work := func() {
		t.Helper()
		if err := b.tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	work()
	if !onDisk(t, dir, text) {
		t.Fatal("the test cannot see texts on the disk")
	}
	at = at.Add(tickAfter + time.Hour)
	work()
	if _, end := bounds(t, conn, kafkaconn.Interactions); end != 2 {
		t.Fatalf("no tick was written: the log ends at %d", end)
	}
	commit(t, conn, 2)
	work()
	if onDisk(t, dir, text) {
		t.Fatal("a consumed text is still on the disk a day later")
	}
	at = at.Add(tickAfter + time.Hour)
	work()
	if _, end := bounds(t, conn, kafkaconn.Interactions); end != 2 {
		t.Fatal("a log that holds nothing but a tick got another one")
	}
	if v := b.cluster.TopicInfo(kafkaconn.Interactions).Configs["segment.bytes"]; v == nil || *v != strconv.Itoa(segmentBytes) {
		t.Fatalf("the segment size was not set back")
	}
}

// A dead letter leaves the disk of a quiet broker once the ring's age is over, not only its offset.
func TestDeadLettersLeaveTheDisk(t *testing.T) {
	dir := t.TempDir()
	opt := oneOf(dir)
	at := time.Now()
	opt.now = func() time.Time { return at }
	b := start(t, opt)
	conn := connTo(b.Addr())
	const text = "a dead letter that must leave the disk"
	if err := produce(t, conn, kafkaconn.DeadLetters, text); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for range 10 {
		if err := b.tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Trim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if onDisk(t, dir, text) {
			seen++
		}
		at = at.Add(tickAfter)
	}
	if seen < 7 || seen > 9 || onDisk(t, dir, text) {
		t.Errorf("the dead letter was on the disk for %d days, want 7 and a day or two", seen)
	}
}

func onDisk(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		found = found || bytes.Contains(raw, []byte(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

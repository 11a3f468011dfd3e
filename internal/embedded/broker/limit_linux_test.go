package broker

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// TestFullDisk: a write that fails is an error, what was acknowledged stays, and writing goes on when
// there is room again.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	p := spawn(t, dir)
	setLimit(t, p.Process.Pid, 400<<10)
	big := func(i int) string { return fmt.Sprintf("record %d ", i) + randomText(40<<10, i) }
	acked := 0
	var err error
	for ; acked < 100; acked++ {
		if err = produce(t, p.conn, kafkaconn.Interactions, big(acked)); err != nil {
			break
		}
	}
	if err == nil || acked == 0 || audit.KindOf(err) != audit.KindUnavailable {
		t.Fatalf("after %d records: %v, want an error of class unavailable", acked, err)
	}
	setLimit(t, p.Process.Pid, 1<<30)
	if err := produce(t, p.conn, kafkaconn.Interactions, big(acked)); err != nil {
		t.Fatalf("with room again: %v", err)
	}
	p.kill()
	b := start(t, oneOf(dir))
	got := values(t, connTo(b.Addr()), kafkaconn.Interactions, 0)
	if len(got) < acked+1 {
		t.Fatalf("%d records are there, %d were acknowledged", len(got), acked+1)
	}
	for i := range acked + 1 {
		if got[i] != big(i) {
			t.Fatalf("record %d is another one", i)
		}
	}
}

// setLimit bounds the size of the files that a process may write.
func setLimit(t *testing.T, pid int, bytes uint64) {
	t.Helper()
	limit := unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Fatal(err)
	}
}

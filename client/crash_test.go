package client_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/client"
)

// crashDir names the spool of a child process that emits until it is killed.
const crashDir = "EVENHAND_TEST_SPOOL"

var errAway = audit.E("test", audit.KindUnavailable, errors.New("away"))

// spooled makes an emitter with a spool of small files.
func spooled(dest client.Destination, dir string) (*client.Emitter, error) {
	o := client.DefaultEmitterOptions()
	o.Linger = 0
	o.Spool = client.DefaultSpool(dir)
	o.Spool.SegmentBytes = 4 << 10
	return client.NewEmitter(dest, o)
}

// emitUntilKilled prints the id of each event that is in the spool; its server is away.
func emitUntilKilled(dir string) {
	e, err := spooled(&memory{fail: func([]client.Encoded) error { return errAway }}, dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		id, err := e.Emit(client.Event{Prompt: "Who?", Response: clean})
		if err == nil {
			err = e.Flush(context.Background())
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id)
	}
}

// What was in the spool when a process was killed arrives, once it runs again, under the same ids.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for round := range 3 {
		c := exec.CommandContext(t.Context(), exe)
		c.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err = c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 100*(round+1) && lines.Scan(); n++ {
			want = append(want, lines.Text())
		}
		_ = c.Process.Kill()
		for lines.Scan() { // printed before it died
			want = append(want, lines.Text())
		}
		_ = c.Wait()
	}
	if len(want) < 600 {
		t.Fatalf("%d events: %q", len(want), want)
	}
	m := &memory{}
	e, err := spooled(m, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := m.ids()
	for _, id := range want {
		if _, err := audit.ParseID(id); err != nil || !slices.Contains(got, id) {
			t.Fatalf("%s is lost", id)
		}
	}
	m.events(t)
	if left, _ := filepath.Glob(filepath.Join(dir, "*.evh*")); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// A restart sends what the server did not take, in order, and nothing twice unless it was under way.
func TestSpoolGoesOn(t *testing.T) {
	dir := t.TempDir()
	away, err := spooled(&memory{fail: func([]client.Encoded) error { return errAway }}, dir)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for range 200 {
		id, err := away.Emit(client.Event{Tenant: "acme", Response: clean})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	if err = away.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = away.Close(ctx)
	if s := away.Stats(); s.SpoolBytes == 0 || s.Sent != 0 || len(s.Dropped) != 0 {
		t.Errorf("%+v", s)
	}
	m := &memory{}
	e, err := spooled(m, dir)
	if err != nil {
		t.Fatal(err)
	}
	id, err := e.Emit(client.Event{Response: clean})
	if err != nil {
		t.Fatal(err)
	}
	if err = e.Close(t.Context()); err != nil || !slices.Equal(m.ids(), append(want, id)) || m.es[0].Tenant != "acme" {
		t.Errorf("%v: %d of %d", err, len(m.ids()), len(want)+1)
	}
	if s := e.Stats(); s.SpoolBytes != 0 || s.Sent != 201 {
		t.Errorf("%+v", s)
	}
}

// A full spool holds what it has and refuses the rest; a refused event takes no other with it.
func TestSpoolBounds(t *testing.T) {
	dir := t.TempDir()
	open := make(chan struct{})
	m := &memory{fail: func(es []client.Encoded) error {
		select {
		case <-open:
		default:
			return errAway
		}
		for _, e := range es {
			if strings.Contains(string(e.JSON), "poison") {
				return audit.E("test", audit.KindInvalid, errors.New("refused"))
			}
		}
		return nil
	}}
	o := client.DefaultEmitterOptions()
	o.Linger, o.Events, o.EventBytes = 0, 20, 1000
	o.Spool = &client.SpoolOptions{Dir: dir, Bytes: 4096, SegmentBytes: 1024}
	e, err := client.NewEmitter(m, o)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 500 {
		ev := client.Event{Response: clean}
		if i == 3 {
			ev.Response = "poison"
		}
		if id, err := e.Emit(ev); err == nil && i != 3 {
			want = append(want, id)
		}
	}
	if s := e.Stats(); s.SpoolBytes > 4096 || s.Dropped[client.DroppedFull] < 400 {
		t.Errorf("%+v", s)
	}
	close(open)
	if err = e.Close(t.Context()); err != nil || !slices.Equal(m.ids(), want) || e.Stats().Dropped[client.DroppedRefused] != 1 {
		t.Errorf("%v: %d of %d, %+v", err, len(m.ids()), len(want), e.Stats())
	}
}

// What is torn is dropped, what is damaged is set aside, and what stands before either arrives.
func TestSpoolDamage(t *testing.T) {
	dir := t.TempDir()
	away, err := spooled(&memory{fail: func([]client.Encoded) error { return errAway }}, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = spooled(&memory{}, dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("two processes in one spool: %v", err)
	}
	for range 60 { // a few files
		_, _ = away.Emit(client.Event{Response: clean})
		_ = away.Flush(t.Context())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_ = away.Close(ctx)
	files, _ := filepath.Glob(filepath.Join(dir, "*.evh"))
	if len(files) < 3 {
		t.Fatalf("%v", files)
	}
	change := func(path string, f func([]byte) []byte) {
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, f(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	last := len(files) - 1
	change(files[0], func(b []byte) []byte { b[len(b)-3] ^= 1; return b })
	change(files[last], func(b []byte) []byte { return b[:len(b)-3] })
	m := &memory{}
	e, err := spooled(m, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err = e.Close(t.Context()); err != nil || len(m.ids()) != 58 {
		t.Errorf("%v: %d of 58", err, len(m.ids()))
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*.evh*"))
	if len(left) != 1 || left[0] != files[0]+".damaged" {
		t.Errorf("left %v", left)
	}
}

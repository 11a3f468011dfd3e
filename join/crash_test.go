package join

import (
	"fmt"
	"testing"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

// split tells n calls in four pieces each, interleaved, so that any position cuts through many of them.
func split(w *world, n int) {
	for i := range n + 3 {
		piece := func(j int, make func(g, k string) call.Part) {
			if j < 0 || j >= n {
				return
			}
			p := make(fmt.Sprintf("trace %d", j), fmt.Sprintf("span %d", j))
			p.Format, p.Group = "otlp", fmt.Sprintf("trace %d", j)
			w.put(3*time.Second, p)
		}
		piece(i, func(_, k string) call.Part {
			return call.Part{Kind: call.Content, Key: k, Messages: user("question " + k)}
		})
		piece(i-1, func(_, k string) call.Part {
			return call.Part{Kind: call.Model, Key: k, Parent: "app", Model: "m", Withheld: true}
		})
		piece(i-2, func(_, k string) call.Part {
			return call.Part{Kind: call.Content, Key: k, Answers: reply("answer " + k)}
		})
		piece(i-3, func(g, _ string) call.Part {
			return call.Part{Kind: call.Context, Key: "app", Claimed: "acme", Domain: "hr", Service: g}
		})
	}
}

func whole(t *testing.T, w *world, n int) {
	t.Helper()
	told := w.told()
	for i := range n {
		k := fmt.Sprintf("span %d", i)
		id := call.ID("acme", fmt.Sprintf("trace %d", i), k).String()
		es := told[id]
		if len(es) != 1 {
			t.Errorf("%s: told %d times differently", k, len(es))
			continue
		}
		if e := es[0]; e.text() != "user:question "+k+" → answer "+k || e.Tenant != "acme" || e.Domain != "hr" || e.Model != "m" {
			t.Errorf("%s: %+v %s", k, e, e.text())
		}
		delete(told, id)
	}
	if len(told) > 0 {
		t.Errorf("%d events of nothing", len(told))
	}
}

// The joiner breaks down before and after each thing that it does: each event, mark and position. The next one loses
// nothing, and tells nothing otherwise.
func TestCrashAtEveryEffect(t *testing.T) {
	const n = 12
	for k := 0; ; k++ {
		w := newWorld(t, 2)
		w.cfg.Window = 20 * time.Second
		split(w, n)
		w.left = k
		w.join()
		crashed := w.left == 0
		w.left = -1
		w.join()
		whole(t, w, n)
		if t.Failed() {
			t.Fatalf("crash %d", k)
		}
		if !crashed {
			t.Logf("%d crashes", k)
			if k < 20 {
				t.Error("too few things are done to prove anything")
			}
			return
		}
	}
}

// Three joiners in a row break down.
func TestCrashAgainAndAgain(t *testing.T) {
	const n = 12
	for k := 1; k < 30; k++ {
		w := newWorld(t, 1)
		w.cfg.Window = 20 * time.Second
		split(w, n)
		for _, left := range []int{k, k / 2, 5, -1} {
			w.left = left
			w.join()
		}
		whole(t, w, n)
		if t.Failed() {
			t.Fatalf("crash %d", k)
		}
	}
}

// Ten thousand calls whose other halves never come: the memory is bounded, all are told.
func TestNeverCompleted(t *testing.T) {
	const n = 10_000
	w := newWorld(t, 4)
	w.most, w.cfg.Groups = 500, 1000
	for i := range n {
		w.put(time.Millisecond, call.Part{Format: "otlp", Kind: call.Content, Group: fmt.Sprint("trace ", i), Key: "k", Messages: user("never answered")})
	}
	most := int64(0)
	j, err := NewJoiner(w.cfg, w.options(), w, callsLog{w}, w.bury)
	if err != nil {
		t.Fatal(err)
	}
	w.until = func(w *world) bool {
		groups, bytes := j.Open()
		most = max(most, groups, bytes/1000)
		for part := range w.log {
			if w.committed[part] != int64(len(w.log[part])) {
				return false
			}
		}
		return true
	}
	ctx, cancel := withCancel(t)
	w.cancel = cancel
	if err := j.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if len(w.told()) != n || w.counts["forced"] < n-w.cfg.Groups-w.most || most > int64(w.cfg.Groups) {
		t.Errorf("%d told, %d early, %d open at most", len(w.told()), w.counts["forced"], most)
	}
	if groups, bytes := j.Open(); groups != 0 || bytes != 0 {
		t.Errorf("%d groups of %d bytes stay", groups, bytes)
	}
}

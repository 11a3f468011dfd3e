package join

import (
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/ingest/call"
)

// on is an answer of the call l on its way.
func on(text string) call.Part {
	return call.Part{Format: "litellm", Kind: call.Model, Group: "l", Key: "l", SoFar: true, Answers: reply(text)}
}

// logged is what a logger tells of the call l at its end.
func logged(text string) call.Part {
	return call.Part{Format: "litellm", Kind: call.Model, Group: "l", Key: "l", Messages: user("q"), Answers: reply(text), Service: "desk"}
}

// A stream of minutes is one call, with what its logger tells behind it; a quarter of an hour is the most.
func TestStreamOfMinutes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces int // one every ten seconds
		want   string
	}{
		{"two minutes", 12, "user:q → " + strings.Repeat("word ", 12)},
		{"fourteen minutes", 84, "user:q → " + strings.Repeat("word ", 84)},
	} {
		w := newWorld(t, 1)
		w.put(time.Second, call.Part{Format: "litellm", Kind: call.Model, Group: "l", Key: "l", Messages: user("q")})
		for i := range tc.pieces {
			w.put(10*time.Second, on(strings.Repeat("word ", i+1)))
		}
		w.put(time.Second, logged(strings.Repeat("word ", tc.pieces)))
		w.cfg.MemoryBytes = 1 << 20
		w.join()
		if es := w.only("default", "l", "l"); len(es) != 1 || es[0].text() != tc.want || es[0].Application != "desk" {
			t.Errorf("%s: %+v", tc.name, es)
		}
		w.want(map[string]int{"called litellm": 1, "late dropped": 0, "late told_again": 0, "forced": 0})
	}
	w := newWorld(t, 1)
	for i := range 100 {
		w.put(10*time.Second, on(strings.Repeat("word ", i+1)))
	}
	w.join()
	es := w.only("default", "l", "l")
	if len(es) != 2 || es[0].text() != "→ "+strings.Repeat("word ", 90) || es[1].text() != "→ "+strings.Repeat("word ", 100) {
		t.Errorf("sixteen minutes: %+v", es)
	}
}

// What is held of a stream grows with its text and not with its square.
func TestStreamIsFolded(t *testing.T) {
	w := newWorld(t, 1)
	g := &group{}
	for i := range 400 {
		w.put(0, on(strings.Repeat("a word ", i+1)))
		r := w.log[0][i]
		if !g.add(&r, noon) {
			t.Fatal(i)
		}
		if g.add(&r, noon) {
			t.Fatalf("%d: the same part twice", i)
		}
	}
	if len(g.parts) != 1 || g.first() != 0 || g.upto != 399 || g.bytes > 400*(partCost+8)+1000 {
		t.Errorf("%d parts, %d bytes, offsets %d to %d", len(g.parts), g.bytes, g.first(), g.upto)
	}
	p, err := decode(g.parts[0].value)
	if err != nil || p.Said() != 400*7+2 {
		t.Errorf("%d %v", p.Said(), err)
	}
}

// A call that was told with an answer on its way is told again with more of it, and with its end; less of it, or the same end twice, adds nothing.
func TestLateAnswers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first call.Part
		late  call.Part
		again bool
	}{
		{"more", on("one"), on("one two"), true},
		{"less", on("one two"), on("one"), false},
		{"the end", on("one"), logged("one two"), true},
		{"the end, of which all was seen", on("one"), logged("one"), true},
		{"the end twice", logged("one"), logged("one two"), false},
		{"seen behind the end", logged("one"), on("one two"), false},
	} {
		w := newWorld(t, 1)
		w.most = 1
		w.put(31*time.Second, tc.first)
		w.put(31*time.Second, tc.late)
		w.join()
		want := map[string]int{"called litellm": 1, "late dropped": 1, "late told_again": 0}
		if tc.again {
			want = map[string]int{"called litellm": 2, "late dropped": 0, "late told_again": 1}
		}
		for what, n := range want {
			if w.counts[what] != n {
				t.Errorf("%s: %s %d, want %d", tc.name, what, w.counts[what], n)
			}
		}
	}
}

// asked is what a guard tells of a call before the model is asked.
func asked(key string) call.Part {
	return call.Part{Format: "litellm", Kind: call.Model, Group: key, Key: key, Messages: user("q"), Asked: true}
}

func end(key, text string) call.Part {
	p := logged(text)
	p.Group, p.Key = key, key
	return p
}

// A slow call, which a guard tells before and a logger behind it, is one; but the first, as nobody knows then that its end will be told.
func TestSlowCalls(t *testing.T) {
	for _, tc := range []struct {
		name  string
		takes time.Duration // the first
		twice int           // calls told in two events
	}{{"after a short one", 5 * time.Second, 0}, {"all are slow", 3 * time.Minute, 1}} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 1)
			w.most = 1
			w.put(tc.takes, asked("first"))
			w.put(time.Second, end("first", "a"))
			w.put(4*time.Minute, asked("slow"))
			w.put(time.Second, end("slow", "b"))
			w.put(14*time.Minute, asked("slower"))
			w.put(time.Second, end("slower", "c"))
			w.join()
			w.want(map[string]int{"called litellm": 3 + tc.twice, "late dropped": 0, "late told_again": tc.twice, "forced": 0})
			for key, text := range map[string]string{"slow": "b", "slower": "c"} {
				if es := w.only("default", key, key); len(es) != 1 || es[0].text() != "user:q → "+text || es[0].Application != "desk" {
					t.Errorf("%s: %+v", key, es)
				}
			}
		})
	}
}

// What is asked and never ends is told: at once where no ends are told at all, else after a quarter of an hour.
func TestAskedAndNeverEnded(t *testing.T) {
	for _, tc := range []struct {
		name          string
		told, blocked bool // ends are told; the call is stopped on its way
		least, most   time.Duration
	}{
		{"no ends are told", false, false, 30 * time.Second, time.Minute},
		{"ends are told", true, false, 15 * time.Minute, 16 * time.Minute},
		{"stopped", true, true, 30 * time.Second, time.Minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, 1)
			if tc.told {
				w.put(time.Second, asked("other"))
				w.put(time.Second, end("other", "a"))
			}
			p := asked("left")
			if tc.blocked {
				p.Asked, p.Status = false, call.Blocked
			}
			w.put(0, p)
			began := w.now
			w.join()
			if took := w.now.Sub(began); took < tc.least || took > tc.most {
				t.Errorf("told after %v", took)
			}
			if es := w.only("default", "left", "left"); len(es) != 1 || es[0].text() != "user:q → " {
				t.Errorf("%+v", es)
			}
		})
	}
}

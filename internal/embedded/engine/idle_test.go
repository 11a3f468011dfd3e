package engine_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestIdleX(t *testing.T) {
	if os.Getenv("IDLE") == "" {
		t.Skip()
	}
	e := enginetest.Start(t)
	w := enginetest.Conn(t, e.Config(engine.Writer))
	b, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	_ = b
	var pid int
	ds, _ := os.ReadDir("/proc")
	for _, d := range ds {
		st, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(st[strings.LastIndexByte(string(st), ')')+2:]))
		if f[1] == strconv.Itoa(os.Getpid()) {
			pid, _ = strconv.Atoi(d.Name())
		}
	}
	w.Exec(t.Context(), "CREATE TABLE evenhand.t (a String) ENGINE=MergeTree ORDER BY a")
	w.Exec(t.Context(), "INSERT INTO evenhand.t SELECT toString(number) FROM numbers(10000)")
	time.Sleep(12 * time.Second)
	use := func() map[string]int {
		m := map[string]int{}
		ts, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		for _, d := range ts {
			st, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, d.Name()))
			name := string(st[strings.IndexByte(string(st), '(')+1 : strings.LastIndexByte(string(st), ')')])
			f := strings.Fields(string(st[strings.LastIndexByte(string(st), ')')+2:]))
			u, _ := strconv.Atoi(f[11])
			s, _ := strconv.Atoi(f[12])
			m[name] += u + s
			m["ALL"] += u + s
		}
		return m
	}
	a := use()
	time.Sleep(20 * time.Second)
	z := use()
	for k := range z {
		if z[k] != a[k] {
			t.Logf("%s %d ticks / 20 s = %.2f %%", k, z[k]-a[k], float64(z[k]-a[k])/20)
		}
	}
	st, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for _, l := range strings.Split(string(st), "\n") {
		if strings.HasPrefix(l, "VmRSS") || strings.HasPrefix(l, "Threads") || strings.HasPrefix(l, "RssAnon") {
			t.Log(l)
		}
	}
}

package engine_test

import (
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestExplore(t *testing.T) {
	dir := t.TempDir()
	e := enginetest.StartWith(t, engine.Options{Dir: dir})
	dirOf[e] = dir
	w := enginetest.Conn(t, e.Config(engine.Writer))
	q := func(c interface{}, sql string) {}
	_ = q
	show := func(u engine.User, sql string) {
		cfg := e.Config(u)
		if u == "default" {
			cfg.Username = "default"
			cfg.Password = ""
			cfg.Database = ""
		}
		c, _ := chconn.Open(cfg)
		defer c.Close()
		rows, err := c.Query(t.Context(), sql)
		if err != nil {
			t.Log(u, sql, "ERR", err)
			return
		}
		defer rows.Close()
		n := 0
		for rows.Next() {
			n++
			if n > 60 {
				continue
			}
			ts := rows.ColumnTypes()
			vals := make([]any, len(ts))
			for i := range vals {
				vals[i] = reflect.New(ts[i].ScanType()).Interface()
			}
			if err := rows.Scan(vals...); err != nil {
				t.Log(err)
			}
			out := []any{}
			for _, v := range vals {
				out = append(out, reflect.ValueOf(v).Elem().Interface())
			}
			t.Log(u, sql[:min(30, len(sql))], out)
		}
		t.Log(u, sql, n, "rows", rows.Err())
	}
	for _, s := range strings.Split(os.Getenv("SQL"), ";") {
		u := engine.Writer
		s = strings.TrimSpace(s)
		if a, b, ok := strings.Cut(s, "@"); ok {
			u = engine.User(a)
			s = b
		}
		if s == "" {
			continue
		}
		if d, err := time.ParseDuration(s); err == nil {
			time.Sleep(d)
			continue
		}
		if s == "LOG" {
			for _, f := range []string{"engine.log", "engine.err.log"} {
				b, _ := os.ReadFile(dirOf[e] + "/log/" + f)
				t.Log(f, string(b))
			}
			continue
		}
		if p, ok := strings.CutPrefix(s, "HTTP "); ok {
			r, err := http.Get("http://" + e.Endpoint(u).HTTP + p)
			if err != nil {
				t.Log(err)
				continue
			}
			b, _ := io.ReadAll(r.Body)
			t.Log(p, r.StatusCode, string(b))
			continue
		}
		show(u, s)
	}
	_ = w
}

var dirOf = map[*engine.Engine]string{}

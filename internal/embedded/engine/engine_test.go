package engine_test

import (
	"testing"

	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

func TestMain(m *testing.M) { enginetest.Main(m) }

func TestSmoke(t *testing.T) {
	e := enginetest.Start(t)
	c := enginetest.Conn(t, e.Config(engine.Writer))
	for _, q := range []string{"SELECT version()", "SELECT timezone()", "SELECT currentDatabase()", "SELECT 'a'", "SELECT toString(1)", "SELECT name from system.tables limit 1"} {
		var v string
		err := c.QueryRow(t.Context(), q).Scan(&v)
		t.Log(q, v, err)
		rows, err := c.Query(t.Context(), q)
		t.Log(err)
		for rows.Next() {
			t.Log("row")
		}
		t.Log(rows.Err())
	}
	t.Log(e.Endpoint(engine.Grafana))
}

package boards

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/dashboards/expand"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
)

// TestTenantsAccountSeesItsRows runs the boards as an account of one tenant, with variables that a
// viewer has turned against it.
func TestTenantsAccountSeesItsRows(t *testing.T) {
	_, cells, e := filledEngine(t)
	conn := enginetest.Conn(t, e.Config(engine.GrafanaOf("acme")))
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	view := expand.View{From: time.Now().Add(-24 * time.Hour), To: time.Now()}
	for _, b := range all {
		for _, s := range b.Statements() {
			if b.UID == "evenhand-pipeline" && !strings.Contains(s.SQL, "rollup_") && !strings.Contains(s.SQL, "FROM rejected") || strings.HasPrefix(s.Title, "$") {
				continue
			}
			for _, tenants := range [][]string{{expand.All}, {"beta"}, {"acme", "beta"}} {
				view.Variables = choices()["all"]
				view.Variables["tenant"] = tenants
				sql, err := expand.Statement(s.SQL, view)
				if err != nil {
					t.Fatal(err)
				}
				got := run(t, conn, sql)
				for i := range got.rows {
					for _, column := range got.names {
						if v := fmt.Sprint(got.value(i, column)); strings.Contains(v, "beta") || v == "tutor" || v == "mistral" {
							t.Errorf("%s, %s: %s shows %s", b.UID, s.Title, column, v)
						}
					}
				}
				if s.Title == "Analysed interactions" {
					want := sum(cells, view.From, view.To, func(c cell) uint64 {
						if c.tenant == "acme" && tenants[0] != "beta" {
							return c.n
						}
						return 0
					})
					if n := got.number(0, "analysed"); n != float64(want) {
						t.Errorf("%v of %v: %v analysed, want %d", s.Title, tenants, n, want)
					}
				}
			}
		}
	}
}

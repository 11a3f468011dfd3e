package clickhouse_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// An event day that begins while a check runs, as at midnight or with an import, is looked at like the others.
func TestDayThatBeginsDuringACheck(t *testing.T) {
	conn, db := fresh(t)
	s := chsink.New(conn, db, chsink.Options{})
	write := func(i int) {
		r := record(i, "answer", int64(i))
		r.Interaction.Time = brokerTime.AddDate(0, 0, -i)
		send(t, s, batch([]audit.Record{r}))
	}
	write(0)
	var once sync.Once
	live := &hooked{Conn: conn, query: func(sql string) {
		if strings.Contains(sql, "seals.event, seals.interaction") { // as seals are read
			once.Do(func() { write(1) })
		}
	}}
	r, err := store.New(live, db).CheckWith(t.Context(), store.CheckOptions{})
	if err != nil || faultOf(r, store.FaultInteractionDeleted) != 0 {
		t.Errorf("%v %+v", err, r.Faults)
	}
}

package clickhouse

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/evenhand/evenhand/internal/chconn"
)

// unsettled are the query ids of inserts that the server has taken rows for and not answered. Inserts
// that go well are never among them.
type unsettled struct {
	mu  sync.Mutex
	ids map[string]struct{}
}

// doubt notes an insert that ended with err on our side. An exception of the server says that it does
// nothing more there either; any other error, and a broken-off insert (nil), leaves open what it does.
func (u *unsettled) doubt(id string, err error) {
	var answer *clickhouse.Exception
	if errors.As(err, &answer) {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ids == nil {
		u.ids = map[string]struct{}{}
	}
	u.ids[id] = struct{}{}
}

func (u *unsettled) forget(ids ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, id := range ids {
		delete(u.ids, id)
	}
}

func (u *unsettled) list() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Keys(u.ids))
}

const (
	settlePoll = 50 * time.Millisecond
	settleKill = 2 * time.Second // an insert whose client is gone may run so long before it is ended
)

// settle waits until no insert of unknown outcome runs on the server: what is written again must not
// be overtaken by what was written before. A server that was restarted runs none. An insert that goes
// on is killed, but never into Replicated tables: cancelling one there while Keeper recovers can drop
// acknowledged rows (ClickHouse#112149). It fails when the server cannot be asked; the caller tries again.
func (s *Sink) settle(ctx context.Context) error {
	const op = "sinks/clickhouse: wait for an insert of unknown outcome"
	for begun := time.Now(); ; {
		ids := s.pending.list()
		if len(ids) == 0 {
			return nil
		}
		running, err := s.running(ctx, ids)
		if err != nil {
			return chconn.Wrap(op, err)
		}
		s.pending.forget(slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(running, id) })...)
		if len(running) == 0 {
			return nil
		}
		if !s.opt.Replicated && time.Since(begun) > settleKill {
			if err := s.conn.Exec(ctx, "KILL QUERY WHERE query_id IN (?) SYNC", running); err != nil {
				return chconn.Wrap(op, err)
			}
			continue
		}
		t := time.NewTimer(settlePoll)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return chconn.Wrap(op, ctx.Err())
		}
	}
}

// running lists those of some queries that run now, on any replica that answers.
func (s *Sink) running(ctx context.Context, ids []string) ([]string, error) {
	processes := "system.processes"
	if s.opt.Cluster != "" {
		processes = "clusterAllReplicas(" + s.opt.Cluster + ", system.processes)"
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"skip_unavailable_shards": 1}))
	rows, err := s.conn.Query(ctx, "SELECT query_id FROM "+processes+" WHERE query_id IN (?)", ids)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var found []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		found = append(found, id)
	}
	return found, rows.Err()
}

// Package repair keeps the read model equal to what it is made of: a row of audit_current is a function
// of one interaction, its current verdicts and its reviews, and of whether its id came with other content.
//
// The hot path writes the row with its batch; later facts (a retry, an outside verdict, a review), a range that was written again
// under other rules, and a second content under a known id change what the row should say. A repair
// looks at what was written in a range of the store's time, by comparing hashes, and writes the rows
// that differ with one fact more, so that they replace the old ones. Doing it twice, or in two
// processes at once, changes nothing. Nothing is deleted: a row without an interaction is a fault that
// `evenhand check` reports.
//
// Cost is one read of what the range wrote, in shares of half a million events; memory spills to disk.
package repair

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/store"
)

// Repairer writes audit_current. It is safe for concurrent use.
type Repairer struct {
	store *store.Store
	conn  driver.Conn
	table string

	settling time.Duration // how old a row must be: a batch writes interactions and the read model one after the other
}

// New makes a repairer on an open connection, which stays the caller's.
func New(conn driver.Conn, database string) *Repairer {
	return &Repairer{store: store.New(conn, database), conn: conn, table: database + ".audit_current", settling: time.Minute}
}

const (
	// overlap is how much of the range before is looked at again: written_at is set when an insert is
	// made, and an insert may take minutes until it is seen.
	overlap = 15 * time.Minute
	// keysAtOnce bounds the length of a statement.
	keysAtOnce = 1000
)

// Outcome is what a repair did.
type Outcome struct {
	Looked    uint64    // interactions and verdicts in the range, about
	Rewritten int       // rows that differed
	Through   time.Time // end of the range, by the store's clock: where the next one begins
}

// Since repairs what was written after from, zero for everything. progress hears of each share done.
// On an error what was rewritten stays so, and Through is zero.
func (r *Repairer) Since(ctx context.Context, from time.Time, progress func(done, total int)) (out Outcome, err error) {
	now, err := r.store.Now(ctx)
	if err != nil {
		return out, err
	}
	w := store.Written{To: now.Add(-r.settling)}
	if !from.IsZero() {
		w.From = from.Add(-overlap)
	}
	parts, err := r.store.Parts(ctx, w)
	if err != nil {
		return out, err
	}
	unfilled, err := r.store.Unfilled(ctx)
	if err != nil {
		return out, err
	}
	parts = append(parts, unfilled...)
	for i, p := range parts {
		out.Looked += p.Rows
		keys, err := r.store.Stale(ctx, p)
		if err != nil {
			return out, err
		}
		if err := r.Rewrite(ctx, keys, false); err != nil {
			return out, err
		}
		out.Rewritten += len(keys)
		progress(i+1, len(parts))
	}
	out.Through = w.To
	return out, nil
}

// Rewrite computes the rows of some keys anew, and of other contents of their ids, whether they differ
// or not; conflict says that their ids
// are known to have come with other content.
func (r *Repairer) Rewrite(ctx context.Context, keys []store.Key, conflict bool) error {
	month := func(k store.Key) string { return k.Day.Format("2006-01") }
	keys = slices.Clone(keys)
	slices.SortFunc(keys, func(a, b store.Key) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), a.Day.Compare(b.Day), slices.Compare(a.ID[:], b.ID[:]))
	})
	for len(keys) > 0 {
		n := 1
		for n < min(len(keys), keysAtOnce) && keys[n].Tenant == keys[0].Tenant && month(keys[n]) == month(keys[0]) {
			n++
		}
		if err := r.rewrite(ctx, keys[:n], conflict); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func (r *Repairer) rewrite(ctx context.Context, keys []store.Key, conflict bool) error {
	columns, sql, args := r.store.CurrentRows(keys, conflict)
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"async_insert": 0, "insert_deduplicate": 0, "max_query_size": 4 << 20,
		"do_not_merge_across_partitions_select_final": 1, "use_skip_indexes_if_final": 1, "use_skip_indexes_if_final_exact_mode": 1,
	}))
	names := "`" + strings.Join(columns, "`, `") + "`"
	return chconn.Wrap("repair: rewrite", r.conn.Exec(ctx, "INSERT INTO "+r.table+" ("+names+") "+sql, args...))
}

// mostRounds bounds how often Follow begins again while others keep adding facts.
const mostRounds = 3

// ErrBehind says that facts came faster than their row could be written: the next repair shows them.
var ErrBehind = audit.E("repair: follow", audit.KindOverloaded, errors.New("the row is behind the facts; the repair will write it"))

// Follow rewrites the rows of keys of one tenant after facts were stored, and looks whether they then say what the
// facts say. Of two processes that rewrite a row at once the later insert stays, which may have read less; but
// whoever inserted last looks after that, so the row ends up right, whoever it was.
func (r *Repairer) Follow(ctx context.Context, keys ...store.Key) error {
	for round := 0; len(keys) > 0; round++ {
		if round == mostRounds {
			return ErrBehind
		}
		if err := r.Rewrite(ctx, keys, false); err != nil {
			return err
		}
		stale, err := r.store.StaleAmong(ctx, keys)
		if err != nil {
			return err
		}
		keys = slices.DeleteFunc(slices.Clone(keys), func(k store.Key) bool { return !slices.Contains(stale, k) })
	}
	return nil
}

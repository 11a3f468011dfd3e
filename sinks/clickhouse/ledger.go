package clickhouse

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/seal"
)

const (
	// factSeals is the table of the seals of what comes later than a batch.
	factSeals = "fact_seals"
	// sealFor bounds the writing of a row of seals, which does not end with the caller: others wait for the same row.
	sealFor = 10 * time.Second
	// witnessed is how far back a writer looks for others.
	witnessed = 31 * 24 * time.Hour
)

// sealed writes tables in order, and before them the seals of the rows of some: so a row never stands without its seal, however a process ends. When the
// rows are in, or could not be written, that is noted with the next seals.
func (s *Sink) sealed(ctx context.Context, all []*table, some ...*table) error {
	var es []factSeal
	for _, t := range some {
		of, err := factSealsOf(t)
		if err != nil {
			return err
		}
		es = append(es, of...)
	}
	write := prepared{sink: s, tables: all}
	if len(es) == 0 {
		return write.Send(ctx)
	}
	n, err := s.ledger.seal(ctx, es)
	if err != nil {
		if ctx.Err() != nil { // others that are done may have left it to this one
			s.ledger.pay(ctx)
		}
		return err
	}
	err = write.Send(ctx)
	s.ledger.done(ctx, n, es, err)
	return err
}

// factSeal is an element of a row of seals.
type factSeal struct {
	object             string // a table, seal.Void or seal.Witness
	day                time.Time
	tenant, name       uint64
	version, canonical uint64 // of the row; the second its hash, or a number
}

// factSealsOf makes the seals of a table's rows.
func factSealsOf(t *table) ([]factSeal, error) {
	at := slices.IndexFunc(seal.Facts[:], func(f seal.Fact) bool { return f.Table == t.name })
	if at < 0 {
		return nil, audit.E("sinks/clickhouse: seal", audit.KindInternal, errors.New("table "+t.name+" has no seals"))
	}
	form := seal.Facts[at]
	row, err := newSealer(form.Form, t)
	if err != nil {
		return nil, err
	}
	name := sealer{form: form.Name(), columns: row.columns[:form.Key]}
	version, day := row.value("version"), row.value("event_day")
	out := make([]factSeal, t.rows)
	var scratch []byte
	for i := range out {
		x := &out[i]
		x.object = t.name
		x.day, _ = day(i).(time.Time)
		x.version, _ = version(i).(uint64)
		tenant, _ := row.columns[0].value(i).(string)
		x.tenant = seal.TenantHash(tenant)
		scratch = name.canonical(scratch[:0], i)
		x.name = seal.Hash(scratch)
		scratch = row.canonical(scratch[:0], i)
		x.canonical = seal.Hash(scratch)
	}
	return out, nil
}

// value gives the values of a column by name.
func (s *sealer) value(name string) func(row int) any {
	return s.columns[slices.IndexFunc(s.form.Columns, func(c seal.Column) bool { return c.Name == name })].value
}

// ledger writes the seals of facts as a chain of rows, one at a time: while one is being written the next ones gather, so that facts that come side by side
// share an insert. It is safe for concurrent use.
type ledger struct {
	sink   *Sink
	writer uuid.UUID
	turn   chan struct{} // held by who writes

	mu   sync.Mutex
	next *sheet         // what gathers; nil: nothing
	open map[uint64]int // by row, facts that are sealed there and not known to be in
	void []factSeal     // seals whose rows could not be written, for the next row
	owes bool           // facts are in of which no row says so yet

	// Of who holds the turn.
	n       uint64 // the last row
	version uint64 // of attempts to write a row: of two that are there the later one holds
	before  [sha256.Size]byte
	day     time.Time // when others were last looked at
}

// sheet is what becomes a row.
type sheet struct {
	seals []factSeal
	facts int        // calls that brought some
	left  []factSeal // of them, of calls that ended while they waited
	gone  int

	done chan struct{} // closed when it is written, or is not
	n    uint64
	err  error
}

func newLedger(s *Sink) *ledger {
	return &ledger{sink: s, writer: uuid.New(), turn: make(chan struct{}, 1), open: map[uint64]int{}}
}

// seal writes seals and gives the number of their row, for done. Without any it writes what is to be noted.
func (l *ledger) seal(ctx context.Context, es []factSeal) (uint64, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &sheet{done: make(chan struct{})}
	}
	x := l.next
	x.seals = append(x.seals, es...)
	if len(es) > 0 {
		x.facts++
	}
	l.mu.Unlock()
	select {
	case <-x.done:
	case l.turn <- struct{}{}:
		l.write(ctx, x)
		<-l.turn
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		select {
		case <-x.done:
		default:
			if len(es) > 0 {
				x.gone, x.left = x.gone+1, append(x.left, es...)
			}
			return 0, chconn.Wrap("sinks/clickhouse: wait for seals", ctx.Err())
		}
	}
	return x.n, x.err
}

// due tells whether nobody else will say what is owed; the caller holds mu.
func (l *ledger) due() bool {
	return l.owes && len(l.open) == 0 && (l.next == nil || l.next.facts == l.next.gone)
}

// pay says which facts are in, where that is owed. It does not end with the caller: the fact is in and sealed. What cannot be said now is with the next seals.
func (l *ledger) pay(ctx context.Context) {
	l.mu.Lock()
	due := l.due()
	l.mu.Unlock()
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sealFor)
	defer cancel()
	_, _ = l.seal(ctx, nil)
}

// done notes that the rows of a fact's seals are in, or that they could not be written. The last one to be done says so at once, of all that are in,
// whatever came of its own; else the seals of those that are under way will.
func (l *ledger) done(ctx context.Context, n uint64, es []factSeal, err error) {
	l.mu.Lock()
	if err != nil {
		l.voided(n, es)
	}
	l.owes = l.owes || err == nil
	if l.open[n]--; l.open[n] == 0 {
		delete(l.open, n)
	}
	l.mu.Unlock()
	l.pay(ctx)
}

func (l *ledger) voided(n uint64, es []factSeal) {
	for _, e := range es {
		l.void = append(l.void, factSeal{object: seal.Void, day: e.day, tenant: e.tenant, name: e.name, version: e.version, canonical: n})
	}
}

// write writes a sheet unless that is done; the caller holds the turn.
func (l *ledger) write(ctx context.Context, x *sheet) {
	l.mu.Lock()
	if l.next != x {
		l.mu.Unlock()
		return
	}
	void, stored, owed := l.void, l.n, l.owes
	for n := range l.open {
		stored = min(stored, n-1)
	}
	l.next, l.void, l.owes = nil, nil, owed && len(l.open) > 0 // then some are in rows after stored
	l.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sealFor)
	defer cancel()
	err := l.insert(ctx, slices.Concat(x.seals, void), stored)

	l.mu.Lock()
	defer l.mu.Unlock()
	if x.err = err; err != nil {
		l.void, l.owes = append(void, l.void...), l.owes || owed
	} else {
		x.n = l.n
		if x.facts > x.gone {
			l.open[x.n] = x.facts - x.gone
		}
		l.voided(x.n, x.left)
	}
	close(x.done)
}

// ledgerRow is a row of fact_seals.
type ledgerRow struct {
	n, version, stored uint64
	at                 time.Time
	seals              []factSeal
	before             [sha256.Size]byte
}

// insert writes the next row.
func (l *ledger) insert(ctx context.Context, es []factSeal, stored uint64) error {
	now := time.Now().UTC()
	day := now.Truncate(24 * time.Hour)
	if !day.Equal(l.day) {
		others, err := l.others(ctx, now.Add(-witnessed))
		if err != nil {
			return err
		}
		es = append(es, others...)
	}
	l.version++
	t, digest, err := l.table(ledgerRow{l.n + 1, l.version, stored, now, es, l.before})
	if err == nil {
		err = (&prepared{sink: l.sink, tables: []*table{t}}).Send(ctx)
	}
	if err == nil {
		l.n, l.before, l.day = l.n+1, digest, day
	}
	return err
}

// others are the highest numbers of the other writers: who takes away rows at the end of one is told by the next one to write.
func (l *ledger) others(ctx context.Context, since time.Time) (es []factSeal, err error) {
	const op = "sinks/clickhouse: look at other writers' seals"
	rows, err := l.sink.conn.Query(ctx, "SELECT writer, max(n) FROM "+l.sink.database+"."+factSeals+" WHERE writer != ? AND sealed_at >= fromUnixTimestamp64Milli(?, 'UTC') GROUP BY writer ORDER BY writer", l.writer, since.UnixMilli())
	if err != nil {
		return nil, chconn.Wrap(op, err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var writer uuid.UUID
		var n uint64
		if err := rows.Scan(&writer, &n); err != nil {
			return nil, chconn.Wrap(op, err)
		}
		es = append(es, factSeal{object: seal.Witness, day: time.Unix(0, 0).UTC(), name: seal.WriterHash(writer), canonical: n})
	}
	return es, chconn.Wrap(op, rows.Err())
}

// table has one row and gives the digest of its form.
func (l *ledger) table(r ledgerRow) (*table, [sha256.Size]byte, error) {
	t, rows := &table{name: factSeals}, []ledgerRow{r}
	key := l.sink.opt.Seal
	add(t, "writer", rows, func(*ledgerRow) uuid.UUID { return l.writer })
	add(t, "n", rows, func(r *ledgerRow) uint64 { return r.n })
	add(t, "version", rows, func(r *ledgerRow) uint64 { return r.version })
	add(t, "seal_version", rows, func(*ledgerRow) uint8 { return seal.Version })
	add(t, "sealed_at", rows, func(r *ledgerRow) int64 { return r.at.UnixMilli() })
	add(t, "stored", rows, func(r *ledgerRow) uint64 { return r.stored })
	noted(t, rows, "object", func(e *factSeal) string { return e.object })
	noted(t, rows, "day", func(e *factSeal) time.Time { return e.day })
	noted(t, rows, "tenant", func(e *factSeal) uint64 { return e.tenant })
	noted(t, rows, "name", func(e *factSeal) uint64 { return e.name })
	noted(t, rows, "version", func(e *factSeal) uint64 { return e.version })
	noted(t, rows, "row", func(e *factSeal) uint64 { return e.canonical })
	add(t, "before", rows, func(r *ledgerRow) []byte { return r.before[:] })
	add(t, "signer", rows, func(*ledgerRow) string {
		if key == nil {
			return ""
		}
		return key.ID()
	})
	whole, err := newSealer(seal.Ledger, t)
	if err != nil {
		return nil, [sha256.Size]byte{}, err
	}
	digest := sha256.Sum256(whole.canonical(nil, 0))
	add(t, "signature", rows, func(*ledgerRow) string {
		if key == nil {
			return ""
		}
		return string(key.Sign(digest))
	})
	return t, digest, nil
}

// noted adds one column of the Nested seals.
func noted[T any](t *table, rows []ledgerRow, name string, f func(*factSeal) T) {
	add(t, "seals."+name, rows, func(r *ledgerRow) []T { return each(r.seals, f) })
}

// Package clickhouse is the store of record: it writes batches into ClickHouse, in an order that
// makes the commit marker the last thing to appear, and reads the markers back.
//
// Every row's key and version come from the log record alone, so writing a range again changes
// nothing under FINAL. No insert tokens and no deduplication window are used: on a kill -9 they lose
// rows. Text lies in interaction_texts only. Errors carry their class: KindInvalid when the data is
// at fault, KindUnavailable when the server is.
//
// An insert whose outcome is unknown (timeout, cut, server restarted) is waited for before anything is
// written or any marker is read again: see settle.go.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/failpoint"
	"github.com/evenhand/evenhand/internal/seal"
	"github.com/evenhand/evenhand/sinks"
)

// Options are what an operator sets for servers outside; the zero value is one server of its own.
type Options struct {
	// Cluster is the name that ON CLUSTER statements use; "" means one server.
	Cluster string
	// Replicated says that the tables have Replicated engines.
	Replicated bool
	// InsertQuorum is how many replicas must have a part before its insert is acknowledged: "" (one),
	// "auto" (the majority) or a number. Needs Replicated.
	InsertQuorum string
	// SequentialReads lets markers be read only from a replica that has all acknowledged parts, and
	// therefore one insert into a table at a time (insert_quorum_parallel = 0). Needs InsertQuorum.
	SequentialReads bool
	// Classes says into which retention class texts and users go; nil puts all into DefaultClass.
	Classes Classes
	// Seal signs the markers with their seals, and the seals of later facts; nil leaves them unsigned.
	Seal *seal.Key
	// Nice lowers the priority of the threads that insert, 0..19 as the operating system counts, so that
	// queries on the same processors come first. 0 leaves it.
	Nice int
}

// DefaultClass is the retention class of tenants that have no other.
const DefaultClass = "std"

// Classes assigns retention classes, which are partitions. Both methods are safe for concurrent use.
type Classes interface {
	// Ready is called before a batch is written; an error keeps it from being written.
	Ready(ctx context.Context) error
	// Class is that of a tenant's events of a day: the same whenever the event comes again. It must be
	// cheap and is called after Ready.
	Class(tenant string, day time.Time) string
}

type oneClass struct{}

func (oneClass) Ready(context.Context) error    { return nil }
func (oneClass) Class(string, time.Time) string { return DefaultClass }

// Validate reports every fault, with the key as the operator writes it.
func (o Options) Validate() error {
	var errs []error
	if n, err := strconv.ParseUint(o.InsertQuorum, 10, 8); o.InsertQuorum != "" && o.InsertQuorum != "auto" && (err != nil || n < 2) {
		errs = append(errs, fmt.Errorf("clickhouse.insert_quorum: %q is not empty, auto or a number of replicas from 2", o.InsertQuorum))
	}
	if o.InsertQuorum != "" && !o.Replicated {
		errs = append(errs, errors.New("clickhouse.insert_quorum: is set, but clickhouse.replicated is false; a quorum needs Replicated tables"))
	}
	if o.SequentialReads && o.InsertQuorum == "" {
		errs = append(errs, errors.New("clickhouse.sequential_reads: is true, but clickhouse.insert_quorum is empty; without a quorum no replica is known to have everything"))
	}
	return errors.Join(errs...)
}

// Sink writes to one database. It is safe for concurrent use.
type Sink struct {
	conn     driver.Conn
	database string
	opt      Options
	inserts  clickhouse.Settings
	pending  unsettled
	ledger   *ledger
}

// New makes a sink on an open connection, which stays the caller's. Options are those that passed
// Validate.
func New(conn driver.Conn, database string, opt Options) *Sink {
	if opt.Classes == nil {
		opt.Classes = oneClass{}
	}
	s := &Sink{conn: conn, database: database, opt: opt, inserts: opt.insertSettings()}
	s.ledger = newLedger(s)
	return s
}

var _ sinks.Store = (*Sink)(nil)

// Prepare implements sinks.Store. It only lists what goes where: values are made column by column
// while they are sent, because whole columns of a batch would be what the garbage collector scans.
func (s *Sink) Prepare(b *sinks.Batch) (sinks.Prepared, error) {
	texts, verdicts, interactions := textsOf(b), verdictsTable(b.Records), interactionsTable(b.Records)
	markers, err := s.markersTable(b, interactions, verdicts, texts)
	if err != nil {
		return nil, err
	}
	return &prepared{sink: s, tables: []*table{
		textRows(texts.rows, s.opt.Classes), usersTable(b.Records, s.opt.Classes), verdicts, interactions, currentTable(b.Records),
		rejectedTable(b.Rejected), markers, // the marker comes last
	}}, nil
}

// prepared is a batch as tables, in the order in which they are written.
type prepared struct {
	sink   *Sink
	tables []*table
}

// Send writes the tables one after the other; while one is sent, the next ones are encoded, each on a
// connection of its own where the pool has as many. The marker's rows leave only after everything else
// was acknowledged.
func (p *prepared) Send(ctx context.Context) error {
	if err := p.sink.settle(ctx); err != nil {
		return err
	}
	if err := p.sink.opt.Classes.Ready(ctx); err != nil {
		return err
	}
	var tables []*table
	for _, t := range p.tables {
		if t.rows > 0 {
			tables = append(tables, t)
		}
	}
	// Each insert holds a connection until its turn comes: taken one by one, those of many callers wait for each other.
	ahead, release, err := chconn.Reserve(ctx, p.sink.conn, len(tables))
	if err != nil {
		return err
	}
	defer release()
	ctx, cancel := context.WithCancel(ctx)
	var inserts []*opening
	begin := func() {
		if len(inserts) == len(tables) {
			return
		}
		t := tables[len(inserts)]
		o := &opening{id: uuid.NewString(), table: t.name, ready: make(chan insert, 1)}
		inserts = append(inserts, o)
		go func() { o.ready <- p.sink.open(ctx, o.id, t) }()
	}
	defer func() {
		cancel()
		for _, o := range inserts {
			p.sink.abandon(o)
		}
	}()
	for range ahead {
		begin()
	}
	for i := range tables {
		if err := p.sink.finish(ctx, inserts[i]); err != nil {
			return chconn.Wrap("sinks/clickhouse: insert into "+tables[i].name, err)
		}
		begin()
	}
	return nil
}

// opening is an insert that is being begun at the server and encoded.
type opening struct {
	id    string // of the query
	table string
	ready chan insert
	taken bool // by finish
}

// insert is what came of it.
type insert struct {
	batch driver.Batch // nil when it was broken off
	err   error
}

// finish sends the rest of an insert and waits for its acknowledgement.
func (s *Sink) finish(ctx context.Context, o *opening) error {
	var in insert
	select {
	case in = <-o.ready:
		o.taken = true
	case <-ctx.Done(): // a hung server may hold it for minutes
		return ctx.Err()
	}
	if in.err != nil {
		return in.err
	}
	if o.table == markers {
		failpoint.Hit(failpoint.BeforeMarker, "")
	}
	if err := in.batch.Send(); err != nil {
		s.pending.doubt(o.id, err)
		return err
	}
	failpoint.Hit(failpoint.Inserted, o.table)
	return nil
}

// abandon breaks off an insert that finish did not take, as soon as it comes back from the server; its
// context has ended. It counts as one of unknown outcome.
func (s *Sink) abandon(o *opening) {
	if o.taken {
		return
	}
	s.pending.doubt(o.id, nil)
	go func() {
		if in := <-o.ready; in.batch != nil {
			_ = in.batch.Abort()
		}
	}()
}

// blockRows is how many rows are encoded at once. Blocks of one insert become one part all the same;
// small ones keep the buffers of the client small.
const blockRows = 2_000

// insertSettings: an insert is one acknowledged write. Rows are collapsed and skip indexes are built
// by the merges that follow, which do both anyway; readers use FINAL.
func (o Options) insertSettings() clickhouse.Settings {
	s := clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0, "optimize_on_insert": 0, "materialize_skip_indexes_on_insert": 0}
	if o.InsertQuorum != "" {
		s["insert_quorum"] = o.InsertQuorum
		s["insert_quorum_parallel"] = flag(!o.SequentialReads)
	}
	if o.Nice != 0 {
		s["os_thread_priority"] = o.Nice
	}
	return s
}

// readSettings are those of the reads that decide what is written again.
func (o Options) readSettings() clickhouse.Settings {
	s := clickhouse.Settings{}
	if o.SequentialReads {
		s["select_sequential_consistency"] = 1
	}
	return s
}

// open starts the insert and encodes the columns; all but the last block are on their way after it.
func (s *Sink) open(ctx context.Context, id string, t *table) insert {
	settings := s.inserts
	if t.manyPartitions {
		settings = maps.Clone(settings)
		settings["max_partitions_per_insert_block"] = mostPartitions
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(id), clickhouse.WithSettings(settings))
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = "`" + c.name + "`"
	}
	b, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+s.database+"."+t.name+" ("+strings.Join(names, ", ")+")")
	if err != nil { // the server has not asked for rows, so none were sent
		return insert{err: err}
	}
	for from := 0; from < t.rows; from += blockRows {
		if from > 0 {
			if err := b.Flush(); err != nil {
				_ = b.Abort()
				s.pending.doubt(id, err)
				return insert{err: err}
			}
		}
		to := min(from+blockRows, t.rows)
		for i, c := range t.columns {
			if err := c.appendTo(b.Column(i), from, to); err != nil {
				_ = b.Abort()
				s.pending.doubt(id, nil)
				return insert{err: audit.E("encode "+c.name, audit.KindInvalid, err)}
			}
		}
	}
	return insert{batch: b}
}

// table is what goes into one table.
type table struct {
	name    string
	rows    int
	columns []column

	manyPartitions bool // a day may have several, one a retention class
}

// mostPartitions of one insert: the days of a batch (90 at most) in each of eight classes.
const mostPartitions = 800

// column makes the values of rows [from, to) and appends them.
type column struct {
	name      string
	appendTo  func(to driver.BatchColumn, from, till int) error
	canonical func(b []byte, row int, c seal.Column) []byte // appends a value as its seal takes it in
	value     func(row int) any
}

// add makes a column whose values f gives.
func add[R, T any](t *table, name string, rows []R, f func(*R) T) {
	t.rows = len(rows)
	t.columns = append(t.columns, column{name, func(to driver.BatchColumn, from, till int) error {
		values := make([]T, till-from)
		for i := range values {
			values[i] = f(&rows[from+i])
		}
		return to.Append(values)
	}, func(b []byte, row int, c seal.Column) []byte { return canonical(b, c, f, &rows[row]) }, func(row int) any { return f(&rows[row]) }})
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/store"
)

// Std is the class of all tenants that have no other.
const Std = "std"

// MostClasses bounds the classes, Std among them: each is a partition a day.
const MostClasses = 8

const (
	// refreshEvery is how old the assignments are that a process writes by.
	refreshEvery = time.Minute
	// mostStale is how old they may become while the store cannot be asked: then nothing is written.
	mostStale = 30 * time.Minute
	// notice is how long before the first event that it can concern an assignment must be made: longer
	// than mostStale, with room for clocks that differ.
	notice = time.Hour
)

// Assignment says in which class a tenant's texts are written from an event day on.
type Assignment struct {
	Tenant   string    `json:"tenant"`
	Class    string    `json:"class"`
	TextDays int       `json:"text_days"` // 0: as the settings say
	RowDays  int       `json:"row_days"`
	From     time.Time `json:"from"`
	At       time.Time `json:"assigned_at"`
	By       string    `json:"assigned_by"`
}

// assignments are by tenant, in the order of from and then of the time of assignment.
type assignments map[string][]Assignment

// of gives the assignment that holds for an event day.
func (a assignments) of(tenant string, day time.Time) (Assignment, bool) {
	list := a[tenant]
	for i := len(list) - 1; i >= 0; i-- {
		if !list[i].From.After(day) {
			return list[i], true
		}
	}
	return Assignment{}, false
}

// Classes answers in which class an event's texts are written. It is safe for concurrent use.
type Classes struct {
	conn driver.Conn
	db   string

	mu    sync.Mutex // held while refreshing
	known atomic.Pointer[known]
	clock func() time.Time
}

type known struct {
	of assignments
	at time.Time
}

// NewClasses makes the lookup over an open connection, which stays the caller's. It reads nothing yet.
func NewClasses(conn driver.Conn, database string) *Classes {
	return &Classes{conn: conn, db: database, clock: time.Now}
}

// Ready makes sure that the assignments are at most a minute old, or half an hour while the store does
// not answer. It must be called before each batch is written; most calls cost nothing.
func (c *Classes) Ready(ctx context.Context) error {
	k := c.known.Load()
	if k != nil && c.clock().Sub(k.at) < refreshEvery {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if k = c.known.Load(); k != nil && c.clock().Sub(k.at) < refreshEvery {
		return nil
	}
	at := c.clock()
	of, err := readAssignments(ctx, c.conn, c.db)
	if err != nil {
		if k != nil && at.Sub(k.at) < mostStale {
			return nil
		}
		return err
	}
	c.known.Store(&known{of, at})
	return nil
}

// Class is the class of a tenant's events of a day: always the same, however often it is asked. It is
// valid after Ready.
func (c *Classes) Class(tenant string, day time.Time) string {
	k := c.known.Load()
	if k == nil || len(k.of) == 0 {
		return Std
	}
	if a, ok := k.of.of(tenant, day); ok {
		return a.Class
	}
	return Std
}

// TextsGo is when the texts of a tenant's events of a day may be dropped.
func (c *Classes) TextsGo(ctx context.Context, cfg Config, tenant string, day time.Time) (time.Time, error) {
	if err := c.Ready(ctx); err != nil {
		return time.Time{}, err
	}
	return cfg.limits(tenant, day, c.known.Load().of).textsGo(day), nil
}

// List gives all assignments by tenant and day.
func (c *Classes) List(ctx context.Context) ([]Assignment, error) {
	of, err := readAssignments(ctx, c.conn, c.db)
	var out []Assignment
	for _, list := range of {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b Assignment) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), a.From.Compare(b.From), a.At.Compare(b.At))
	})
	return out, err
}

var className = regexp.MustCompile(`^[a-z][a-z0-9_]{0,15}$`)

// FirstDay is the first day for which a class can be assigned now: events of an earlier one may be on
// their way, since an event may be dated a day ahead.
func FirstDay(now time.Time) time.Time { return dayOf(now.Add(notice)).AddDate(0, 0, 2) }

// Assign appends an assignment; At is set by the store's clock. It fails with KindInvalid when the day is
// too near, when the class exists with other limits, or when there are too many classes.
func (c *Classes) Assign(ctx context.Context, a Assignment, cfg Config) (Assignment, error) {
	const op = "retention: assign"
	now, err := store.New(c.conn, c.db).Now(ctx)
	if err != nil {
		return a, err
	}
	a.At, a.From = now.UTC(), dayOf(a.From)
	list, err := c.List(ctx)
	if err != nil {
		return a, err
	}
	if err := a.validate(now, list, cfg); err != nil {
		return a, audit.E(op, audit.KindInvalid, err)
	}
	err = c.conn.Exec(ctx, "INSERT INTO "+c.db+".retention_classes (tenant_id, from_day, assigned_at, version, class, text_days, row_days, assigned_by) VALUES (?, toDate(?), "+instant+", 1, ?, ?, ?, ?)",
		a.Tenant, a.From.Format(time.DateOnly), a.At.UnixMilli(), a.Class, a.TextDays, a.RowDays, a.By)
	return a, chconn.Wrap(op, err)
}

func (a Assignment) validate(now time.Time, list []Assignment, cfg Config) error {
	var errs []error
	if a.Tenant == "" {
		errs = append(errs, errors.New("tenant: is empty"))
	}
	if !className.MatchString(a.Class) {
		errs = append(errs, fmt.Errorf("class: %q is not up to 16 of a-z, 0-9 and _, a letter first", a.Class))
	}
	if first := FirstDay(now); a.From.Before(first) {
		errs = append(errs, fmt.Errorf("from: events of %s may be stored already or be on their way; the first day that can be assigned is %s", a.From.Format(time.DateOnly), first.Format(time.DateOnly)))
	}
	if l := cfg.of(a.Tenant); a.TextDays > 0 && a.TextDays < SixMonths && l.Profile == EUHighRisk {
		errs = append(errs, fmt.Errorf("text_days: %d is less than the six months that the profile %s keeps", a.TextDays, EUHighRisk))
	}
	switch {
	case a.Class == Std && (a.TextDays != 0 || a.RowDays != 0):
		errs = append(errs, fmt.Errorf("text_days and row_days: those of %s are in the settings", Std))
	case a.Class != Std && (a.TextDays < 1 || a.TextDays > mostDays || a.RowDays < a.TextDays || a.RowDays > mostDays):
		errs = append(errs, fmt.Errorf("text_days and row_days: %d and %d; want 1 <= text_days <= row_days <= %d", a.TextDays, a.RowDays, mostDays))
	}
	classes := []string{Std}
	for _, o := range list {
		if o.Class == a.Class && (o.TextDays != a.TextDays || o.RowDays != a.RowDays) {
			errs = append(errs, fmt.Errorf("class: %s keeps texts %d and rows %d days; choose another name for other limits", o.Class, o.TextDays, o.RowDays))
			break
		}
		if !slices.Contains(classes, o.Class) {
			classes = append(classes, o.Class)
		}
	}
	if !slices.Contains(classes, a.Class) && len(classes) >= MostClasses {
		errs = append(errs, fmt.Errorf("class: there are %d already (%s); each is a partition a day", len(classes), strings.Join(classes, ", ")))
	}
	return errors.Join(errs...)
}

func readAssignments(ctx context.Context, conn driver.Conn, db string) (assignments, error) {
	const op = "retention: read classes"
	rows, err := conn.Query(ctx, "SELECT tenant_id, from_day, assigned_at, class, text_days, row_days, assigned_by FROM "+db+".retention_classes FINAL ORDER BY tenant_id, from_day, assigned_at")
	if err != nil {
		return nil, chconn.Wrap(op, err)
	}
	defer func() { _ = rows.Close() }()
	out := assignments{}
	for rows.Next() {
		var a Assignment
		var text, row uint32
		if err := rows.Scan(&a.Tenant, &a.From, &a.At, &a.Class, &text, &row, &a.By); err != nil {
			return nil, chconn.Wrap(op, err)
		}
		a.TextDays, a.RowDays, a.From, a.At = int(text), int(row), a.From.UTC(), a.At.UTC()
		out[a.Tenant] = append(out[a.Tenant], a)
	}
	return out, chconn.Wrap(op, rows.Err())
}

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
)

// Bucket is the width of a trend's points.
type Bucket string

// The buckets; weeks begin on Monday, all in UTC.
const (
	Hour  Bucket = "hour"
	Day   Bucket = "day"
	Week  Bucket = "week"
	Month Bucket = "month"
)

// Measure is what a trend counts.
type Measure string

// The measures.
const (
	Detected Measure = "detected"
	Flagged  Measure = "flagged"
	Unsafe   Measure = "unsafe"
	Gated    Measure = "gated"
	OfKind   Measure = "kind" // interactions with a finding of TrendQuery.Kind
)

// Group is what the series of a trend stand for.
type Group string

// The groups.
const (
	OneSeries  Group = ""
	ByDomain   Group = "domain"
	ByApp      Group = "app"
	ByModel    Group = "model"
	ByFindings Group = "kind" // a series a kind of finding; Measure is OfKind and Kind empty
)

// TrendQuery asks for rates over time. An open window is the last 30 days.
type TrendQuery struct {
	Window
	Bucket  Bucket
	Measure Measure
	Kind    string
	Group   Group
	Domain  audit.Domain
	App     string
	Model   string
}

// TrendSeries are the points of one value of the group, in order of time, without gaps.
type TrendSeries struct {
	Group  string
	Points []TrendPoint
}

// TrendPoint is the rate of the bucket that begins At.
type TrendPoint struct {
	At time.Time
	Rate
}

// Bounds of a trend's answer.
const (
	mostBuckets = 10_000
	mostPoints  = 200_000 // of all series
)

// Trend reads rates over time from the rollups, which outlive the rows. A rate is the share of the
// analysed interactions; those that a reviewer dismissed are not counted as bias. The series with the
// most interactions found comes first, and a trend without groups always has its one series. w is what
// was looked at: whole buckets. Hours are those of the rollups by hour, which retention may have
// thinned; all else is read from those by day.
func (f *Figures) Trend(ctx context.Context, q TrendQuery) (series []TrendSeries, w Window, err error) {
	const op = "store: trend"
	if q.Bucket == "" {
		q.Bucket = Day
	}
	if q.Measure == "" {
		q.Measure = Detected
	}
	if err := q.validate(); err != nil {
		return nil, q.Window, audit.E(op, audit.KindInvalid, err)
	}
	w, at := q.window(time.Now())
	if len(at) == 0 || len(at) > mostBuckets {
		return nil, w, audit.E(op, audit.KindInvalid, fmt.Errorf("the range holds %d or more buckets of a %s, of 1..%d: narrow it or take wider ones", len(at), q.Bucket, mostBuckets))
	}
	place := make(map[time.Time]int, len(at))
	for i, t := range at {
		place[t] = i
	}
	// Of kinds the denominator is the same: it stands under "", which is none.
	of := map[string]*counts{}
	grown := func(g string) *counts {
		if of[g] == nil {
			of[g] = &counts{make([]uint64, len(at)), make([]uint64, len(at)), 0}
		}
		return of[g]
	}
	rows := q.query(f, w)
	err = f.each(ctx, op, rows.sql(q.columns(), "GROUP BY at, g"), rows.args, func(r driver.Rows) error {
		var ms, n, k uint64
		var g string
		if err := r.Scan(&ms, &g, &n, &k); err != nil {
			return err
		}
		i, known := place[time.UnixMilli(int64(ms)).UTC()]
		if !known {
			return fmt.Errorf("a bucket at %d", ms)
		}
		c := grown(g)
		if c.n[i], c.k[i], c.sum = n, k, c.sum+k; len(of)*len(at) > mostPoints {
			return audit.E(op, audit.KindInvalid, fmt.Errorf("more than %d points: narrow the range, take wider buckets or another group", mostPoints))
		}
		return nil
	})
	if err != nil {
		return nil, w, err
	}
	all := grown("")
	if q.Group != OneSeries {
		if q.Group != ByFindings {
			all = nil
		}
		if c := of[""]; q.Group == ByFindings || c.empty() {
			delete(of, "")
		}
	}
	for g, c := range of {
		s := TrendSeries{Group: g, Points: make([]TrendPoint, len(at))}
		n := c.n
		if all != nil {
			n = all.n
		}
		for i := range at {
			s.Points[i] = TrendPoint{at[i], RateOf(c.k[i], n[i])}
		}
		series = append(series, s)
	}
	slices.SortFunc(series, func(a, b TrendSeries) int {
		return cmp.Or(cmp.Compare(of[b.Group].sum, of[a.Group].sum), cmp.Compare(a.Group, b.Group))
	})
	return series, w, nil
}

// counts are analysed and found interactions by bucket.
type counts struct {
	n, k []uint64
	sum  uint64 // of k
}

func (c *counts) empty() bool {
	return c == nil || c.sum == 0 && !slices.ContainsFunc(c.n, func(n uint64) bool { return n > 0 })
}

func (q TrendQuery) validate() error {
	var errs []error
	if !slices.Contains([]Bucket{Hour, Day, Week, Month}, q.Bucket) {
		errs = append(errs, fmt.Errorf("bucket: %q is not hour, day, week or month", q.Bucket))
	}
	if !slices.Contains([]Measure{Detected, Flagged, Unsafe, Gated, OfKind}, q.Measure) {
		errs = append(errs, fmt.Errorf("measure: %q is not detected, flagged, unsafe, gated or kind", q.Measure))
	}
	if !slices.Contains([]Group{OneSeries, ByDomain, ByApp, ByModel, ByFindings}, q.Group) {
		errs = append(errs, fmt.Errorf("group: %q is not domain, app, model or kind", q.Group))
	}
	switch {
	case q.Group == ByFindings && (q.Measure != OfKind || q.Kind != ""):
		errs = append(errs, errors.New("group: by kind goes with the measure kind, and without one kind"))
	case q.Group != ByFindings && q.Measure == OfKind && q.Kind == "":
		errs = append(errs, errors.New("kind: is needed by the measure kind; name a key of the taxonomy"))
	case q.Measure != OfKind && q.Kind != "":
		errs = append(errs, errors.New("kind: goes with the measure kind only"))
	}
	if !q.From.IsZero() && !q.To.IsZero() && !q.From.Before(q.To) {
		errs = append(errs, errors.New("end of the time range does not lie after its start"))
	}
	return errors.Join(errs...)
}

// window widens the range to whole buckets and lists their starts, one more than there may be at most.
func (q TrendQuery) window(now time.Time) (w Window, at []time.Time) {
	if w = q.Window; w.To.IsZero() {
		w.To = now
	}
	if w.From.IsZero() {
		w.From = w.To.AddDate(0, 0, -30)
	}
	t := q.Bucket.start(w.From)
	for w.From = t; t.Before(w.To) && len(at) <= mostBuckets; t = q.Bucket.next(t) {
		at = append(at, t)
	}
	w.To = t
	return w, at
}

// start is the beginning of the bucket that t lies in.
func (b Bucket) start(t time.Time) time.Time {
	t = t.UTC()
	y, m, d := t.Date()
	switch b {
	case Hour:
		return t.Truncate(time.Hour)
	case Week:
		d -= (int(t.Weekday()) + 6) % 7
	case Month:
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// next is the beginning of the bucket after the one that begins at t.
func (b Bucket) next(t time.Time) time.Time {
	switch b {
	case Hour:
		return t.Add(time.Hour)
	case Week:
		return t.AddDate(0, 0, 7)
	case Month:
		return t.AddDate(0, 1, 0)
	}
	return t.AddDate(0, 0, 1)
}

// query binds the cells that count, of the denominator (dim all) and of the measure.
func (q TrendQuery) query(f *Figures, w Window) *query {
	var rows *query
	if q.Bucket == Hour {
		rows = f.from("rollup_hourly").current().and("hour >= toDateTime(?, 'UTC')", w.From.Unix()).and("hour < toDateTime(?, 'UTC')", w.To.Unix())
	} else {
		rows = f.from("rollup_daily").current().and("day >= toDate(?)", day(w.From)).and("day < toDate(?)", day(w.To))
	}
	switch {
	case q.Group == ByFindings:
		rows.and("dim IN ('all', 'kind')")
	case q.Measure == OfKind:
		rows.and("dim IN ('all', 'kind')").and("(dim = 'all' OR value = ?)", q.Kind)
	default:
		rows.and("dim IN ('all', 'outcome')").and("(dim = 'all' OR value = ?)", string(q.Measure))
	}
	for _, c := range []struct{ column, value string }{{"domain", string(q.Domain)}, {"app", q.App}, {"model", q.Model}} {
		if c.value != "" {
			rows.and(c.column+" = ?", c.value)
		}
	}
	return rows
}

// columns of a trend's rows: bucket in milliseconds, group, analysed, found.
func (q TrendQuery) columns() string {
	at := map[Bucket]string{Hour: "hour", Day: "day", Week: "toMonday(day)", Month: "toStartOfMonth(day)"}[q.Bucket]
	group := map[Group]string{OneSeries: "''", ByDomain: "toString(domain)", ByApp: "toString(app)", ByModel: "toString(model)", ByFindings: "if(dim = 'all', '', toString(value))"}[q.Group]
	return "toUInt64(toUnixTimestamp(toDateTime(" + at + ", 'UTC'))) * 1000 AS at, " + group + " AS g, sumIf(n, dim = 'all'), sumIf(k, dim != 'all')"
}

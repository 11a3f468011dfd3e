package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/retention"
	"github.com/evenhand/evenhand/sinks/clickhouse"
)

// retentionSettings say how long what is stored is kept.
type retentionSettings struct {
	TextDays int    `koanf:"text_days"` // whole days after the event's
	RowDays  int    `koanf:"row_days"`  // of what has no text, after the event's month
	Profile  string `koanf:"profile"`   // default or eu_high_risk
	// Tenants have limits of their own by name; in the file only.
	Tenants map[string]retentionTenant `koanf:"tenants"`
}

type retentionTenant struct {
	TextDays int            `koanf:"text_days"` // 0: as all
	RowDays  int            `koanf:"row_days"`
	Profile  string         `koanf:"profile"`
	Unknown  map[string]any `koanf:",remain"`
}

func defaultRetention() retentionSettings {
	d := retention.DefaultConfig()
	return retentionSettings{TextDays: d.TextDays, RowDays: d.RowDays, Profile: string(d.Profile)}
}

func (s retentionSettings) config() retention.Config {
	c := retention.Config{TextDays: s.TextDays, RowDays: s.RowDays, Profile: retention.Profile(s.Profile), Tenants: map[string]retention.Override{}}
	for name, t := range s.Tenants {
		c.Tenants[name] = retention.Override{TextDays: t.TextDays, RowDays: t.RowDays, Profile: retention.Profile(t.Profile)}
	}
	return c
}

func (s retentionSettings) validate() error {
	errs := []error{s.config().Validate()}
	for _, name := range slices.Sorted(maps.Keys(s.Tenants)) {
		if unknown := slices.Sorted(maps.Keys(s.Tenants[name].Unknown)); len(unknown) > 0 {
			errs = append(errs, fmt.Errorf("retention.tenants.%s: unknown %s; it takes text_days, row_days and profile", name, strings.Join(unknown, ", ")))
		}
	}
	return errors.Join(errs...)
}

// sinkIn are the options of a sink that puts texts into the classes of their tenants.
func (s settings) sinkIn(conn driver.Conn, database string) clickhouse.Options {
	o := s.sink()
	o.Classes = retention.NewClasses(conn, database)
	return o
}

// sink are the options of the process's sinks, with its key.
func (st *stack) sink() (clickhouse.Options, error) {
	o := st.settings.sinkIn(st.conn, st.chconfig.Database)
	var err error
	o.Seal, err = st.settings.sealKey(st.engine != nil)
	return o, err
}

func retentionJob(r *retention.Retention) func(context.Context, jobs.Run) (jobs.Result, error) {
	return func(ctx context.Context, run jobs.Run) (jobs.Result, error) {
		o, err := r.Run(ctx, run.Progress)
		return jobs.Result{Figures: map[string]int64{
			"partitions_dropped": int64(o.Partitions), "mutations": int64(o.Mutations), "texts": int64(o.Texts), "rows": int64(o.Rows), "bytes": int64(o.Bytes),
			"held": int64(o.Held), "holds": int64(o.HoldsActive), "months_frozen": int64(o.Frozen), "months_waiting": int64(o.Waiting), "months_blocked": int64(o.Blocked),
			"inactive_parts": int64(o.Inactive), "detached_parts": int64(o.Detached), "oldest_text_days": o.OldestDays,
		}}, err
	}
}

// sixMonths is what is said of limits that may be too short for a high-risk system.
const sixMonths = "EU AI Act Art. 19 and 26(6) ask providers and deployers of high-risk systems to keep logs for six months at least, unless other law says otherwise"

// diagnose tells what the limits mean.
func (s retentionSettings) diagnose() diagnosis {
	if retention.Profile(s.Profile) == retention.EUHighRisk {
		d := diagnosis{"ok", "retention", fmt.Sprintf("profile eu_high_risk: texts %d days, and six calendar months and a day at least; rows %d days", s.TextDays, s.RowDays)}
		if s.TextDays < retention.SixMonths {
			d.State, d.Says = "warn", d.Says+fmt.Sprintf("; retention.text_days is %d, shorter than six months: the longer one holds", s.TextDays)
		}
		return d
	}
	d := diagnosis{"ok", "retention", fmt.Sprintf("texts %d days, rows %d days after their month", s.TextDays, s.RowDays)}
	if s.TextDays < retention.SixMonths {
		d.State, d.Says = "warn", d.Says+fmt.Sprintf("; %s: for such a system set retention.profile: eu_high_risk (facts without text stay %d days either way)", sixMonths, s.RowDays)
	}
	return d
}

// shortest are the days after which the first texts of any tenant by name, or of all, go.
func (s retentionSettings) shortest() int {
	least := s.TextDays
	for _, t := range s.Tenants {
		if t.TextDays > 0 {
			least = min(least, t.TextDays)
		}
	}
	return least
}

// keptTopics warns of topics of an outside Kafka that keep texts longer than the store does.
func keptTopics(ctx context.Context, k kafkaconn.Config, s retentionSettings) (out []diagnosis) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	have, err := kafkaconn.List(ctx, k, kafkaconn.Topics(1))
	if err != nil {
		return nil // said already
	}
	for _, t := range have {
		if t.Name != kafkaconn.Interactions && t.Name != kafkaconn.DeadLetters && t.Name != kafkaconn.Calls {
			continue
		}
		if says := topicOutlasts(t, s.shortest()); says != "" {
			out = append(out, diagnosis{"warn", "retention", says})
		}
	}
	return out
}

// topicOutlasts says that a topic keeps what the store drops after some days, "" when it does not.
func topicOutlasts(t kafkaconn.TopicState, days int) string {
	given, ok := t.Config["retention.ms"]
	ms, err := strconv.ParseInt(given, 10, 64)
	limit := int64(days) * 24 * time.Hour.Milliseconds()
	switch {
	case !ok || err != nil, ms >= 0 && ms <= limit:
		return ""
	case ms < 0:
		given = "without limit"
	default:
		given = fmt.Sprintf("%d days", ms/(24*time.Hour.Milliseconds()))
	}
	return fmt.Sprintf("topic %s keeps texts %s, the store %d days: kafka-configs --alter --entity-type topics --entity-name %s --add-config retention.ms=%d", t.Name, given, days, t.Name, limit)
}

package clickhouse

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/evenhand/evenhand/internal/chconn"
)

// RuleSet notes which version of each kind's rules a rule set holds, unless that is known. The first
// process that notes it gives the time: versions of the rows fall with it.
func (s *Sink) RuleSet(ctx context.Context, ruleSet string, versions map[string]string) error {
	const op = "sinks/clickhouse: note the rule set"
	var known uint64
	if err := s.conn.QueryRow(ctx, "SELECT uniqExact(kind) FROM "+s.database+".rule_sets WHERE rule_set = ?", ruleSet).Scan(&known); err != nil {
		return chconn.Wrap(op, err)
	}
	if known >= uint64(len(versions)) {
		return nil
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(s.inserts))
	b, err := s.conn.PrepareBatch(ctx, "INSERT INTO "+s.database+".rule_sets (rule_set, kind, version, rule_version, first_seen)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	now := time.Now().UnixMilli()
	for _, kind := range slices.Sorted(maps.Keys(versions)) {
		if err := b.Append(ruleSet, kind, ^uint64(now), versions[kind], now); err != nil {
			return chconn.Wrap(op, err)
		}
	}
	return chconn.Wrap(op, b.Send())
}

// Package breaches is the table breaches: rows that are made of decisions on evenhand.decisions and of
// nothing else, so that whoever writes a row, it is the same.
package breaches

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/chconn"
)

// Kind is the kind of the decisions; its rule is audit.BreachStates.
const Kind = "breach"

// Columns are those that Scan reads and Write writes: all but written_at.
const Columns = `tenant_id, breach_id, seq, version, state, reason, policy, tier, domain, kind, rule_group, generation, opened_at, changed_at, window_from, window_to,
	n, k, rate, lower, upper, baseline, baseline_n, p_value, severity, rule_set, top_rules.rule, top_rules.interactions, event_ids, mitigation, decided_by, confirmed_at, split.of, split.value, split.interactions`

// Of makes the transition that a decision says: its value, and of the decision itself the id, the number
// and the broker's time.
func Of(d *arbiter.Decision) (audit.Breach, error) {
	return Parse(d.Key.ID, d.Seq, d.Value, d.Time)
}

// Parse is Of for a decision that was read from the table decisions.
func Parse(id string, seq uint32, value []byte, at time.Time) (b audit.Breach, err error) {
	const op = "breaches: decision"
	if err := json.Unmarshal(value, &b); err != nil {
		return b, audit.E(op, audit.KindInvalid, fmt.Errorf("breach/%s %d is not readable", id, seq))
	}
	if b.ID, err = audit.ParseID(id); err != nil {
		return b, audit.E(op, audit.KindInvalid, fmt.Errorf("breach/%s: %w", id, err))
	}
	b.Seq, b.Changed = seq, at.UTC()
	if b.Opened.IsZero() {
		b.Opened = b.Changed
	}
	return b, nil
}

// Proposer is the part of an arbiter that decides.
type Proposer interface {
	Propose(ctx context.Context, p arbiter.Proposal) (arbiter.Decision, error)
}

// Propose has a transition decided: b, or that of whoever was first. An [*arbiter.Refused] error says that
// it does not follow what was decided before.
func Propose(ctx context.Context, log Proposer, b *audit.Breach) (audit.Breach, error) {
	value, err := json.Marshal(b)
	if err != nil {
		return audit.Breach{}, audit.E("breaches: propose", audit.KindInternal, err)
	}
	d, err := log.Propose(ctx, arbiter.Proposal{Key: arbiter.Key{Kind: Kind, ID: b.ID.String()}, Seq: b.Seq, Value: value})
	if err != nil {
		return audit.Breach{}, err
	}
	return Of(&d)
}

// Write inserts transitions as rows. Writing one again changes nothing under FINAL.
func Write(ctx context.Context, conn driver.Conn, database string, list ...audit.Breach) error {
	const op = "breaches: write"
	if len(list) == 0 {
		return nil
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithQueryID(uuid.NewString()), clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0}))
	batch, err := conn.PrepareBatch(ctx, "INSERT INTO "+database+".breaches ("+Columns+")")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = batch.Close() }()
	for i := range list {
		b := &list[i]
		rules, fired, events := []string{}, []uint64{}, []uuid.UUID{}
		of, value, took := []string{}, []string{}, []uint64{}
		for _, s := range b.Split {
			of, value, took = append(of, s.Of), append(value, s.Value), append(took, s.Interactions)
		}
		for _, r := range b.TopRules {
			rules, fired = append(rules, r.Rule), append(fired, r.Interactions)
		}
		for _, e := range b.Events {
			events = append(events, uuid.UUID(e))
		}
		err := batch.Append(b.Tenant, uuid.UUID(b.ID), b.Seq, uint64(b.Changed.UnixMilli()), string(b.State), b.Reason, b.Policy, string(b.Tier), string(b.Domain), b.Kind, b.Group, b.Generation,
			moment(b.Opened), b.Changed, moment(b.From), moment(b.To), b.N, b.K, b.Rate, b.Lower, b.Upper, b.Baseline, b.BaselineN, b.P, b.Severity.Level(), b.RuleSet, rules, fired, events, b.Mitigation, b.By, moment(b.Confirmed), of, value, took)
		if err != nil {
			return chconn.Wrap(op, err)
		}
	}
	return chconn.Wrap(op, batch.Send())
}

// moment keeps a time that was never set inside what a column holds.
func moment(t time.Time) time.Time {
	if t.Year() < 1970 {
		return time.Unix(0, 0).UTC()
	}
	return t
}

// Scan reads a row of Columns; the epoch is a time that was never set.
func Scan(rows driver.Rows) (b audit.Breach, err error) {
	var id uuid.UUID
	var version uint64
	var state, tier, domain string
	var severity uint8
	var rules []string
	var fired []uint64
	var events []uuid.UUID
	var of, value []string
	var took []uint64
	err = rows.Scan(&b.Tenant, &id, &b.Seq, &version, &state, &b.Reason, &b.Policy, &tier, &domain, &b.Kind, &b.Group, &b.Generation, &b.Opened, &b.Changed, &b.From, &b.To,
		&b.N, &b.K, &b.Rate, &b.Lower, &b.Upper, &b.Baseline, &b.BaselineN, &b.P, &severity, &b.RuleSet, &rules, &fired, &events, &b.Mitigation, &b.By, &b.Confirmed, &of, &value, &took)
	b.ID, b.State, b.Tier, b.Domain = audit.ID(id), audit.BreachState(state), audit.BreachTier(tier), audit.Domain(domain)
	for _, t := range []*time.Time{&b.Opened, &b.Changed, &b.From, &b.To, &b.Confirmed} {
		if *t = t.UTC(); t.UnixMilli() == 0 {
			*t = time.Time{}
		}
	}
	if severity > 0 && int(severity) <= len(audit.Severities) {
		b.Severity = audit.Severities[severity-1]
	}
	for i := range rules {
		b.TopRules = append(b.TopRules, audit.RuleCount{Rule: rules[i], Interactions: fired[i]})
	}
	for _, e := range events {
		b.Events = append(b.Events, audit.ID(e))
	}
	for i := range of {
		b.Split = append(b.Split, audit.Behind{Of: of[i], Value: value[i], Interactions: took[i]})
	}
	return b, err
}

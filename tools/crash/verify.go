package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

// verify compares the store, which is at rest, with the ledger and with the log.
func (w *world) verify(ctx context.Context) error {
	if err := w.compare(ctx); err != nil {
		return err
	}
	out, err := w.evenhand(ctx, "check", "--json", "--at-rest")
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	var found store.Report
	if jerr := json.Unmarshal([]byte(last), &found); jerr != nil {
		stderr := ""
		if exit != nil {
			stderr = string(exit.Stderr)
		}
		return fmt.Errorf("evenhand check: %w %s%s", err, last, stderr)
	}
	r := w.report
	r.mu.Lock()
	defer r.mu.Unlock()
	now := w.counted
	now.Lost, now.Double = max(now.Lost, int(found.Lost)), max(now.Double, int(found.Double))
	if found.Log != nil {
		now.Republished = found.Log.Repeated
	}
	r.counts = r.past.plus(now)
	replaced := 0
	for _, p := range found.Partitions {
		replaced += int(p.Epoch)
	}
	switch {
	case err != nil:
		r.Check = json.RawMessage(last)
		return fmt.Errorf("evenhand check found %d faults, status %d", len(found.Faults), exit.ExitCode())
	case found.Log == nil || found.Log.Messages == 0 || found.Log.Messages < uint64(now.Sent) && w.opt.broker != "embedded": // which trims when it is started again
		return fmt.Errorf("evenhand check saw %d messages of at least %d that were acknowledged", found.Log.Messages, now.Sent)
	case replaced > 0:
		return fmt.Errorf("%d partitions were taken for others: their epochs grew though no log was replaced", replaced)
	case found.InFlight > 0:
		return fmt.Errorf("%d interactions are covered by no marker though the log is committed", found.InFlight)
	case r.Lost+r.Double+r.Phantom > 0:
		return fmt.Errorf("lost %d, double %d, phantom %d", r.Lost, r.Double, r.Phantom)
	}
	return nil
}

// sizes are the rows before and under FINAL.
const sizes = "SELECT (SELECT count() FROM evenhand.interactions), (SELECT count() FROM evenhand.interactions FINAL)"

// compare looks up what was acknowledged among the rows under FINAL, over all days.
func (w *world) compare(ctx context.Context) error {
	rows, err := w.conn.Query(ctx, "SELECT tenant_id, event_id, content_digest, partition, offset, id_assumed FROM evenhand.interactions FINAL")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	found, places := map[audit.ID]int{}, map[spot]struct{}{}
	var assumed []spot
	for rows.Next() {
		var tenant, digest string
		var id uuid.UUID
		var at spot
		var noID uint8
		if err := rows.Scan(&tenant, &id, &digest, &at.partition, &at.offset, &noID); err != nil {
			return err
		}
		places[at] = struct{}{}
		if noID == 1 {
			assumed = append(assumed, at)
			continue
		}
		found[audit.HotResultID(tenant, audit.ID(id), [32]byte([]byte(digest)))]++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	rejected, err := w.rejected(ctx)
	if err != nil {
		return err
	}
	var stored, final uint64
	if err := w.conn.QueryRow(ctx, sizes).Scan(&stored, &final); err != nil {
		return err
	}

	l := w.ledger
	l.mu.Lock()
	defer l.mu.Unlock()
	c := counts{Events: len(l.acked) + len(l.nameless), Sent: l.sent, Conflicts: l.conflicts, Rejected: len(l.rejects), BeforeFinal: w.folded + stored - final}
	for id := range l.acked {
		if found[id] == 0 {
			c.Lost++
		}
	}
	for id, n := range found {
		c.Double += n - 1
		if _, ok := l.tried[id]; !ok {
			c.Phantom++
		}
	}
	for at := range l.nameless {
		if _, ok := places[at]; !ok {
			c.Lost++
		}
	}
	for at := range l.rejects {
		if _, ok := rejected[at]; !ok {
			c.Lost++
		}
		if _, ok := places[at]; ok {
			c.Double++
		}
	}
	seen := map[spot]struct{}{}
	for _, at := range assumed {
		if _, twice := seen[at]; twice {
			c.Double++
		}
		seen[at] = struct{}{}
	}
	w.counted = c
	return nil
}

func (w *world) rejected(ctx context.Context) (map[spot]struct{}, error) {
	rows, err := w.conn.Query(ctx, "SELECT partition, offset FROM evenhand.rejected FINAL")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	all := map[spot]struct{}{}
	for rows.Next() {
		var at spot
		if err := rows.Scan(&at.partition, &at.offset); err != nil {
			return nil, err
		}
		all[at] = struct{}{}
	}
	return all, rows.Err()
}

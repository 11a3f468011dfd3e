package retention

import (
	"context"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/seal"
)

// eraseAgain takes out what has come since of erased persons, what holds no longer keep, and what is left of an erasure
// that was broken off. It gives all erasures.
func (r *Retention) eraseAgain(ctx context.Context, out *Outcome, progress func(done, total int)) (list []Erasure, steps []Step, err error) {
	if list, err = r.Erasures(ctx); err != nil {
		return nil, nil, err
	}
	work, err := r.erasuresWithWork(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	for i := range list {
		if !work[list[i].ID] {
			continue
		}
		some, err := r.takeOut(ctx, &list[i], progress)
		if err != nil {
			return nil, nil, err
		}
		for _, s := range some {
			out.Mutations++
			out.Texts += s.Rows
		}
		steps = append(steps, some...)
	}
	return list, steps, nil
}

// erasuresWithWork finds the erasures that may have something to take out, in two statements however many there are: what
// each costs to work through is paid for them alone.
func (r *Retention) erasuresWithWork(ctx context.Context, list []Erasure) (map[audit.ID]bool, error) {
	out := map[audit.ID]bool{}
	for i := range list {
		if list[i].Done.IsZero() {
			out[list[i].ID] = true
		}
	}
	if len(out) == len(list) {
		return out, nil
	}
	for _, sql := range []string{cameAgain, wroteLater} {
		err := r.each(ctx, "retention: look for erasures with work", sql, nil, func(scan func(...any) error) error {
			var id uuid.UUID
			err := scan(&id)
			out[audit.ID(id)] = true
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

const (
	who    = "SHA256(concat(tenant_id, unhex('00'), user_id))"
	theirs = " FROM {db}.interaction_users WHERE tenant_id IN (SELECT tenant_id FROM {db}.erasures) AND " + who + " IN (SELECT who FROM {db}.erasures)"

	// cameAgain finds erasures of persons of whom interactions of before are stored.
	cameAgain = "SELECT DISTINCT e.erasure_id FROM (SELECT " + began + " AS since, who FROM {db}.interactions INNER JOIN (SELECT tenant_id, event_day, event_id, " + who + " AS who" + theirs +
		") AS u USING (tenant_id, event_day, event_id) WHERE (tenant_id, event_day, event_id) IN (SELECT tenant_id, event_day, event_id" + theirs +
		")) AS x INNER JOIN (SELECT erasure_id, who, at FROM {db}.erasures FINAL) AS e ON x.who = e.who WHERE x.since < e.at"
)

// wroteLater finds erasures that took interactions of which there are texts. The days of texts that are stored bound it.
var wroteLater = func() string {
	const since = " WHERE event_day >= (SELECT min(event_day) FROM {db}.interaction_texts)"
	event := seal.Event.SQL(nil)
	of := " FROM {db}.interactions WHERE tenant_id IN (SELECT tenant_id FROM {db}.erasures) AND event_day IN (SELECT event_day FROM {db}.texts_erased" + since + ") AND " +
		event + " IN (SELECT arrayJoin(events) FROM {db}.texts_erased" + since + ")"
	const key = "tenant_id, event_day, event_id"
	return "SELECT DISTINCT erasure_id FROM (SELECT erasure_id, arrayJoin(events) AS event FROM {db}.texts_erased" + since + ") WHERE event IN (SELECT " + event + of +
		" AND (" + key + ") IN (SELECT " + key + " FROM {db}.interaction_texts WHERE kind != '" + revealReason + "' AND (" + key + ") IN (SELECT " + key + of + ")))"
}()

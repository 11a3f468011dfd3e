package remediation

import (
	"context"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
)

// DefaultPoll is how often trackers are asked how issues stand.
const DefaultPoll = 5 * time.Minute

// standing is an issue that was made, and where its breach stands.
type standing struct {
	Issue  audit.ID
	Breach audit.BreachState
}

// mostStanding bounds the issues that one look asks for: 40 requests of Linear's thousands an hour.
const mostStanding = 40 * sinks.MostIssues

// standing gives the issues of a target whose breaches are not over, those that changed last first.
func (o *Outbox) standing(ctx context.Context, target string) (list []standing, err error) {
	sql := `SELECT ticket_id, breach_state FROM
			(SELECT tenant_id, breach_id, ticket_id FROM ` + o.db + `.tickets FINAL WHERE target = {target:String} AND action = 'issue' AND state = 'sent') AS t
		INNER JOIN
			(SELECT tenant_id, breach_id, state AS breach_state, changed_at FROM ` + o.db + `.current_breaches WHERE state IN ('open', 'mitigated')) AS b
		USING (tenant_id, breach_id) ORDER BY changed_at DESC, ticket_id LIMIT {limit:UInt32}`
	args := []any{clickhouse.Named("target", target), clickhouse.Named("limit", mostStanding)}
	err = o.each(ctx, "remediation: read issues", sql, args, func(rows driver.Rows) error {
		var id uuid.UUID
		var state string
		if err := rows.Scan(&id, &state); err != nil {
			return err
		}
		list = append(list, standing{audit.ID(id), audit.BreachState(state)})
		return nil
	})
	return list, err
}

// poll asks the trackers that tell how issues stand, each when its time has come, and publishes the issues
// that people closed or opened again, as their webhooks would: an installation that no tracker can reach learns of it all
// the same, and a delivery that never came is made up for. It gives how many these are.
// A tracker that does not answer is logged and left alone like one that takes no tickets; errors are the store's and
// those of publishing.
func (s *Service) poll(ctx context.Context) (n int, err error) {
	for name, t := range s.targets {
		reader, ok := t.Tracker.(sinks.IssueReader)
		if !ok || !s.polls(name) {
			continue
		}
		list, err := s.outbox.standing(ctx, name)
		if err != nil {
			return n, err
		}
		for some := range slices.Chunk(list, sinks.MostIssues) {
			notes, err := moved(ctx, name, reader, some)
			if err != nil {
				s.failed(name, sinks.RetryAfter(err))
				s.opt.Logger.Warn("a tracker did not tell how issues stand; it is asked again", "target", name, "error", cut(err))
				break
			}
			if err := s.publish(notes...); err != nil {
				return n, err
			}
			n += len(notes)
		}
	}
	return n, nil
}

// polls tells whether it is time to ask a tracker, and if so takes note of it.
func (s *Service) polls(target string) bool {
	if s.opt.Poll <= 0 || s.rests(target) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opt.Now()
	if now.Sub(s.polled[target]).Abs() < s.opt.Poll {
		return false
	}
	s.polled[target] = now
	return true
}

// moved reads issues and gives notes of those that stand otherwise than their breaches.
func moved(ctx context.Context, target string, reader sinks.IssueReader, list []standing) (notes []note, err error) {
	ids := make([]audit.ID, len(list))
	for i := range list {
		ids[i] = list[i].Issue
	}
	now, err := reader.Issues(ctx, ids)
	if err != nil {
		return nil, err
	}
	for _, st := range list {
		is, there := now[st.Issue]
		closed := is.Closed != ""
		if there && closed == (st.Breach == audit.BreachOpen) {
			notes = append(notes, note{Target: target, Issue: st.Issue, Closed: closed})
		}
	}
	return notes, nil
}

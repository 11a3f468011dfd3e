package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
)

// TextState says whether the texts of an interaction are still held.
type TextState string

// The values of our field textState.
const (
	TextPresent TextState = "present"
	TextDropped TextState = "dropped"
)

// Record is one interaction with all that is known of it.
type Record struct {
	Item
	// Interaction holds the facts and, while TextState is present, the texts.
	Interaction audit.Interaction
	TextState   TextState
	// Verdicts are the current ones, the hot path's first, then by analyzer.
	Verdicts []audit.Verdict
	// Conflicts are other contents that came under the same id, in order of arrival.
	Conflicts []Item
}

// Evidence cuts a finding out of the stored text, "" once that is dropped.
func (r *Record) Evidence(f audit.Finding) string {
	return f.Span.Slice(r.Interaction.Text(f.Side))
}

// ErrNotFound says that the tenant has no such interaction. Another tenant's looks the same.
var ErrNotFound = audit.E("store: get", audit.KindInvalid, fmt.Errorf("no such interaction"))

// Get reads one interaction. Where several contents came under one id, the first delivered is the
// record and the others are its conflicts.
func (t *Tenant) Get(ctx context.Context, id audit.ID) (*Record, error) {
	const op = "store: get"
	// The key of interactions leads from tenant and id to a granule a day, that of audit_current does not.
	var keys []Cursor
	q := t.from("interactions").and("event_id = toUUID(?)", id.String())
	if _, err := t.keys(ctx, op, q, "ORDER BY sort_ts, content_digest", &keys); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, ErrNotFound
	}
	q = t.from("audit_current").current()
	q.prewhere = among(keys)
	items, err := t.items(ctx, op, q, "ORDER BY broker_ts, topic, partition, offset")
	if err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNotFound
	}
	r := &Record{Item: items[0], Conflicts: items[1:]}
	r.IDConflict = r.IDConflict || len(items) > 1
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := t.facts(gctx, r); err != nil {
			return err
		}
		return t.texts(gctx, r)
	})
	var verdicts []audit.Verdict
	g.Go(func() (err error) {
		verdicts, err = t.verdicts(gctx, &items[0])
		return err
	})
	if err := g.Wait(); err != nil {
		return nil, err
	}
	r.Verdicts = verdicts
	return r, nil
}

// key binds the rows of one event in a table.
func (s scope) key(table string, it *Item) *query {
	return s.from(table).current().and("event_day = toDate(?)", day(it.Time)).and("event_id = toUUID(?)", it.EventID.String())
}

func (s scope) facts(ctx context.Context, r *Record) error {
	q := s.key("interactions", &r.Item)
	found := false
	err := s.each(ctx, "store: get", q.sql(factColumns, ""), q.args, func(rows driver.Rows) error {
		var row factRow
		if err := rows.ScanStruct(&row); err != nil {
			return err
		}
		if digest(row.ContentDigest) == r.Digest {
			r.Interaction, found = row.interaction(), true
		}
		return nil
	})
	if err == nil && !found {
		// audit_current is written after interactions, so this is a fault that check reports.
		err = audit.E("store: get", audit.KindInternal, fmt.Errorf("interaction %s stands in audit_current but not in interactions", r.EventID))
	}
	return err
}

func (s scope) texts(ctx context.Context, r *Record) error {
	q := s.key("interaction_texts", &r.Item)
	r.TextState = TextDropped
	if r.WithoutContent {
		r.TextState = TextPresent // nothing was ever there to drop
	}
	err := s.each(ctx, "store: get", q.sql("kind, source_id, text", ""), q.args, func(rows driver.Rows) error {
		var kind, source, text string
		if err := rows.Scan(&kind, &source, &text); err != nil {
			return err
		}
		if digest(source) != r.Digest {
			return nil
		}
		r.TextState = TextPresent
		return setText(&r.Interaction, kind, text)
	})
	if in := &r.Interaction; in.Query == "" && (in.Messages == "" || hasUserMessage(in.Messages)) {
		in.Query = in.Prompt // a query that equals the prompt has no row of its own
	}
	return err
}

func hasUserMessage(messages string) bool {
	var ms []struct {
		Role string `json:"role"`
	}
	if json.Unmarshal([]byte(messages), &ms) != nil {
		return false
	}
	for _, m := range ms {
		if m.Role == "user" {
			return true
		}
	}
	return false
}

// User is the JSON of the text kind 'user'.
type User struct {
	ID    string `json:"id,omitempty"`
	Email string `json:"email,omitempty"`
	Role  string `json:"role,omitempty"`
}

// setText puts a stored text where it came from; kinds of later facts have no place here.
func setText(in *audit.Interaction, kind, text string) error {
	switch kind {
	case "prompt":
		in.Prompt = text
	case "messages":
		in.Messages = text
	case "query":
		in.Query = text
	case "response":
		in.Response = text
	case "response_json":
		in.ResponseJSON = text
	case "context":
		in.QueryContext = text
	case "sanitized_prompt":
		in.SanitizedPrompt = text
	case "redaction_summary":
		in.RedactionSummary = text
	case "retrieved_context":
		in.RetrievedContext = text
	case "group_attributes":
		in.GroupAttributes = text
	case "metadata":
		in.Metadata = text
	case "error":
		in.ErrorMessage = text
	case "user":
		var u User
		if err := json.Unmarshal([]byte(text), &u); err != nil {
			return fmt.Errorf("text of kind user: not the JSON that was written")
		}
		in.UserID, in.UserEmail, in.UserRole = u.ID, u.Email, u.Role
	}
	return nil
}

// verdicts reads the current verdict of each analyzer: its newest fact.
func (s scope) verdicts(ctx context.Context, it *Item) ([]audit.Verdict, error) {
	q := s.key("verdicts", it)
	var vs []audit.Verdict
	rest := "ORDER BY analyzer != 'hot', analyzer, analysis_ts DESC, result_id DESC"
	err := s.each(ctx, "store: get", q.sql(verdictColumns, rest), q.args, func(rows driver.Rows) error {
		var row verdictRow
		if err := rows.ScanStruct(&row); err != nil {
			return err
		}
		newest := len(vs) == 0 || vs[len(vs)-1].Analyzer != row.Analyzer
		if newest && digest(row.ContentDigest) == it.Digest {
			vs = append(vs, row.verdict())
		}
		return nil
	})
	return vs, err
}

// severity turns a stored level back.
func severity(level uint8) audit.Severity {
	if level >= 1 && int(level) <= len(audit.Severities) {
		return audit.Severities[level-1]
	}
	return ""
}

func duration(us uint32) time.Duration { return time.Duration(us) * time.Microsecond }

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

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
	// The key of interactions leads from tenant and id to the rest of the key, and by that the other tables are read at once.
	facts, known := map[Key]audit.Interaction{}, []*Item(nil)
	q := t.from("interactions").current()
	q.prewhere = anyID("event_id", []audit.ID{id})
	err := t.facts(ctx, op, q, func(it *Item, in audit.Interaction) { facts[it.Key()], known = in, append(known, it) })
	if err != nil {
		return nil, err
	}
	if len(known) == 0 {
		return nil, ErrNotFound
	}
	var items []Item
	var texts map[Key]Texts
	var verdicts map[Key][]StoredVerdict
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { items, err = t.current(gctx, op, known); return err })
	g.Go(func() (err error) { texts, err = t.Texts(gctx, known); return err })
	g.Go(func() (err error) { verdicts, err = t.Verdicts(gctx, known); return err })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if len(items) == 0 {
		return nil, ErrNotFound // it is just coming in: audit_current is written after interactions
	}
	r := &Record{Item: items[0], Conflicts: items[1:]}
	r.IDConflict = r.IDConflict || len(items) > 1
	key := r.Key()
	r.Interaction, r.TextState = withTexts(facts[key], texts[key].Interaction), texts[key].State
	for _, v := range verdicts[key] {
		if v.Current {
			r.Verdicts = append(r.Verdicts, v.Verdict)
		}
	}
	slices.SortStableFunc(r.Verdicts, func(a, b audit.Verdict) int { return cmp.Compare(rank(a), rank(b)) })
	return r, nil
}

// withTexts puts the texts of one into the other.
func withTexts(in, texts audit.Interaction) audit.Interaction {
	in.Prompt, in.Messages, in.Query, in.Response, in.ResponseJSON = texts.Prompt, texts.Messages, texts.Query, texts.Response, texts.ResponseJSON
	in.QueryContext, in.SanitizedPrompt, in.RedactionSummary, in.RetrievedContext = texts.QueryContext, texts.SanitizedPrompt, texts.RedactionSummary, texts.RetrievedContext
	in.GroupAttributes, in.Metadata, in.ErrorMessage = texts.GroupAttributes, texts.Metadata, texts.ErrorMessage
	in.UserID, in.UserEmail, in.UserRole = texts.UserID, texts.UserEmail, texts.UserRole
	return in
}

// queryOf fills in a query that equals the prompt: it has no row of its own.
func queryOf(in *audit.Interaction) {
	if in.Query == "" && (in.Messages == "" || hasUserMessage(in.Messages)) {
		in.Query = in.Prompt
	}
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

// rank sorts the hot path's verdict first, the others by analyzer.
func rank(v audit.Verdict) string {
	if v.Analyzer == audit.HotAnalyzer {
		return ""
	}
	return v.Analyzer
}

// severity turns a stored level back.
func severity(level uint8) audit.Severity {
	if level >= 1 && int(level) <= len(audit.Severities) {
		return audit.Severities[level-1]
	}
	return ""
}

func duration(us uint32) time.Duration { return time.Duration(us) * time.Microsecond }

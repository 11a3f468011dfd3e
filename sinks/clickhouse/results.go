package clickhouse

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Results stores later verdicts on interactions that the store has already, and what an analysis found of
// personal data where the interaction did not say; nothing else of the records changes. The read model
// is not touched: see package repair. Verdicts come last, so that what broke off is done again.
func (s *Sink) Results(ctx context.Context, rs []audit.Record) error {
	var changed []record
	var texts []text
	for i := range rs {
		r, in := &rs[i], rs[i].Interaction
		base := text{tenant: in.Tenant, day: in.Day(), event: uuid.UUID(in.ID), source: in.Digest[:], version: r.Origin.Version()}
		put := func(kind, given, now string) {
			if given != now {
				row := base
				row.kind, row.text = kind, now
				texts = append(texts, row)
			}
		}
		put(KindSanitized, in.SanitizedPrompt, in.Stored(r.SanitizedPrompt()))
		put(KindRedaction, in.RedactionSummary, r.RedactionSummary())
		if in.ContainedPII != r.ContainedPII() || in.SensitivityScore != r.SensitivityScore() {
			changed = append(changed, *r)
		}
	}
	var tables []*table
	if len(texts) > 0 {
		tables = append(tables, textRows(texts, s.opt.Classes))
	}
	if len(changed) > 0 {
		tables = append(tables, interactionsTable(changed)) // of the same version: the last one written holds
	}
	later := slices.DeleteFunc(slices.Clone(rs), func(r audit.Record) bool { return attempt(r.Verdict) == "" }) // the hot path's have theirs in the markers
	return s.sealed(ctx, append(tables, laterVerdicts(rs, nil, Judging{})), laterVerdicts(later, nil, Judging{}))
}

// attempt is the analyzer_version of a verdict: empty on the hot path, retry-N for the N-th attempt to
// analyse what is stored, who sent it for one from outside.
func attempt(v *audit.Verdict) string {
	if v.Attempt == 0 {
		return v.Source
	}
	return "retry-" + strconv.Itoa(v.Attempt)
}

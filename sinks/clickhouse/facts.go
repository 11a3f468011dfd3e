package clickhouse

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
)

// Fact is what somebody says about an interaction that the store has. Writing one again changes nothing.
type Fact struct {
	ID     audit.ID // of the fact
	Tenant string
	Day    time.Time // of the interaction's event
	Event  audit.ID
	Digest [32]byte
	By     string
	At     time.Time
	Texts  []FactText // written before the fact itself: a fact never lacks its words
}

// FactText is a text that belongs to a fact. It lies with the texts of the interaction and goes with them.
type FactText struct{ Kind, Text string }

// OutsideVerdict stores the verdict of an outside analyzer on an interaction, with its texts; said names what
// it gave a value. Of the record only Origin, id, tenant, time and digest of the interaction and the verdict
// count.
func (s *Sink) OutsideVerdict(ctx context.Context, r audit.Record, said []string, texts []FactText) error {
	in := r.Interaction
	f := Fact{ID: r.Verdict.ResultID, Tenant: in.Tenant, Day: in.Day(), Event: in.ID, At: r.Verdict.Time, Texts: texts}
	return s.fact(ctx, f, laterVerdicts([]record{r}, said, Judging{}))
}

// Judging is what a verdict of the judge was made of.
type Judging struct {
	Input  [32]byte // digest of what was judged
	Calls  int
	Tokens [2]int // read and written
	Cost   int64  // millionths of a US dollar
	Words  string // JSON of the judge, "" for none
}

// Judged stores a verdict of the judge on an interaction, with its words. Of the record the same counts as with
// OutsideVerdict.
func (s *Sink) Judged(ctx context.Context, r audit.Record, j Judging) error {
	in := r.Interaction
	f := Fact{ID: r.Verdict.ResultID, Tenant: in.Tenant, Day: in.Day(), Event: in.ID, At: r.Verdict.Time, Texts: []FactText{{KindJudge, j.Words}}}
	return s.fact(ctx, f, laterVerdicts([]record{r}, nil, j))
}

// laterVerdicts has verdicts that came later than their interactions.
func laterVerdicts(rs []record, said []string, j Judging) *table {
	t := verdictsTable(rs)
	add(t, "said", rs, func(*record) []string { return said })
	add(t, "input_digest", rs, func(*record) []byte { return j.Input[:] })
	add(t, "calls", rs, func(*record) uint16 { return uint16(min(j.Calls, 1<<16-1)) })
	add(t, "tokens_in", rs, func(*record) uint32 { return uint32(j.Tokens[0]) })
	add(t, "tokens_out", rs, func(*record) uint32 { return uint32(j.Tokens[1]) })
	add(t, "cost_micro_usd", rs, func(*record) int64 { return j.Cost })
	return t
}

// Review is what a person says about an interaction, with its notes.
type Review struct {
	Fact
	Decision string
	Tags     []string
}

// Review stores one review.
func (s *Sink) Review(ctx context.Context, f Fact, decision string, tags []string) error {
	return s.Reviews(ctx, []Review{{f, decision, tags}})
}

// Reviews stores reviews by one insert.
func (s *Sink) Reviews(ctx context.Context, rs []Review) error {
	fs := make([]Fact, len(rs))
	for i := range rs {
		fs[i] = rs[i].Fact
	}
	t := factTable("reviews", "review_id", "reviewer", "reviewed_at", fs, 1)
	add(t, "decision", rs, func(r *Review) string { return r.Decision })
	add(t, "tags", rs, func(r *Review) []string { return r.Tags })
	return s.facts(ctx, fs, t)
}

// Feedback stores an answer with its note; nil is not known.
func (s *Sink) Feedback(ctx context.Context, f Fact, helped *bool) error {
	rows := []Fact{f}
	t := factTable("feedback", "feedback_id", "subject", "given_at", rows, 1)
	add(t, "helped", rows, func(*Fact) *bool { return helped })
	return s.facts(ctx, rows, t)
}

// Reveal stores that somebody asked to see texts. A refusal stands above the grant of the same id.
func (s *Sink) Reveal(ctx context.Context, f Fact, granted bool) error {
	version := uint64(1)
	if !granted {
		version = 2
	}
	rows := []Fact{f}
	t := factTable("reveals", "reveal_id", "subject", "revealed_at", rows, version)
	add(t, "granted", rows, func(*Fact) uint8 { return flag(granted) })
	return s.facts(ctx, rows, t)
}

// Texts stores the texts of a fact alone.
func (s *Sink) Texts(ctx context.Context, f Fact) error { return s.fact(ctx, f) }

// TaxonomyEntry stores a key of the vocabulary; the row with the highest version holds.
func (s *Sink) TaxonomyEntry(ctx context.Context, id uint32, key, description string, severity uint8, version uint64) error {
	t := &table{name: "bias_taxonomy"}
	one := []uint64{version}
	add(t, "id", one, func(*uint64) uint32 { return id })
	add(t, "bias_key", one, func(*uint64) string { return key })
	add(t, "description", one, func(*uint64) string { return description })
	add(t, "severity_level", one, func(*uint64) uint8 { return severity })
	add(t, "version", one, func(v *uint64) uint64 { return *v })
	return (&prepared{sink: s, tables: []*table{t}}).Send(ctx)
}

func (s *Sink) fact(ctx context.Context, f Fact, after ...*table) error {
	return s.facts(ctx, []Fact{f}, after...)
}

// facts stores the texts of facts, and then what is after them.
func (s *Sink) facts(ctx context.Context, fs []Fact, after ...*table) error {
	var rows []text
	for _, f := range fs {
		source := make([]byte, 32)
		copy(source, f.ID[:])
		for _, t := range f.Texts {
			if t.Text != "" {
				rows = append(rows, text{tenant: f.Tenant, day: f.Day, event: uuid.UUID(f.Event), kind: t.Kind, source: source, version: uint64(f.At.UnixMilli()), text: t.Text})
			}
		}
	}
	tables := append([]*table{textRows(rows, s.opt.Classes)}, after...)
	return s.sealed(ctx, tables, tables...)
}

// factTable begins a table of facts of people.
func factTable(name, id, by, at string, rows []Fact, version uint64) *table {
	t := &table{name: name}
	add(t, "version", rows, func(*Fact) uint64 { return version })
	add(t, "tenant_id", rows, func(f *Fact) string { return f.Tenant })
	add(t, "event_day", rows, func(f *Fact) time.Time { return f.Day })
	add(t, "event_id", rows, func(f *Fact) uuid.UUID { return uuid.UUID(f.Event) })
	add(t, "content_digest", rows, func(f *Fact) []byte { return f.Digest[:] })
	add(t, id, rows, func(f *Fact) uuid.UUID { return uuid.UUID(f.ID) })
	add(t, by, rows, func(f *Fact) string { return f.By })
	add(t, at, rows, func(f *Fact) int64 { return f.At.UnixMilli() })
	return t
}

package clickhouse

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/seal"
	"github.com/evenhand/evenhand/sinks"
)

// sealer hashes the rows of a table: what is sealed is what is written, column by column.
type sealer struct {
	form    seal.Form
	columns []column
}

// newSealer finds the columns of a form in a table.
func newSealer(f seal.Form, t *table) (sealer, error) {
	s := sealer{form: f}
	for _, c := range f.Columns {
		i := slices.IndexFunc(t.columns, func(x column) bool { return x.name == c.Name })
		if i < 0 {
			return s, audit.E("sinks/clickhouse: seal", audit.KindInternal, fmt.Errorf("table %s has no column %s", t.name, c.Name))
		}
		s.columns = append(s.columns, t.columns[i])
	}
	return s, nil
}

// canonical writes the form of a row to b.
func (s *sealer) canonical(b []byte, row int) []byte {
	b = append(b, s.form.Prefix...)
	for i, c := range s.columns {
		b = c.canonical(b, row, s.form.Columns[i])
	}
	return b
}

// canonical writes what f says of a row, as seal.Form says.
func canonical[R any](b []byte, c seal.Column, f any, r *R) []byte {
	switch f := f.(type) {
	case func(*R) string:
		if c.Kind == seal.Fixed {
			return seal.AppendFixed(b, f(r), c.Width)
		}
		return seal.AppendText(b, f(r))
	case func(*R) []byte:
		if c.Kind == seal.Numbers {
			return seal.AppendNumbers(b, f(r))
		}
		return seal.AppendFixed(b, f(r), c.Width)
	case func(*R) uuid.UUID:
		return seal.AppendUUID(b, f(r))
	case func(*R) time.Time:
		return seal.AppendDay(b, f(r))
	case func(*R) uint8:
		return seal.AppendNumber(b, int64(f(r)))
	case func(*R) int8:
		return seal.AppendNumber(b, int64(f(r)))
	case func(*R) uint16:
		return seal.AppendNumber(b, int64(f(r)))
	case func(*R) uint32:
		return seal.AppendNumber(b, int64(f(r)))
	case func(*R) int32:
		return seal.AppendNumber(b, int64(f(r)))
	case func(*R) int64:
		return seal.AppendNumber(b, f(r))
	case func(*R) uint64:
		return seal.AppendUnsigned(b, f(r))
	case func(*R) *bool:
		return seal.AppendMaybe(b, f(r))
	case func(*R) []time.Time:
		return seal.AppendDays(b, f(r))
	case func(*R) []string:
		return seal.AppendTexts(b, f(r))
	case func(*R) []int64:
		return seal.AppendNumbers(b, f(r))
	case func(*R) []int32:
		return seal.AppendNumbers(b, f(r))
	case func(*R) []uint32:
		return seal.AppendNumbers(b, f(r))
	case func(*R) []uint64:
		return seal.AppendNumbers(b, f(r))
	}
	return b // a type that no sealed column has: its seals would never agree
}

// markerRow is a marker with the seals of what its range gave.
type markerRow struct {
	sinks.Marker
	at    time.Time
	index int
	all   func() []seals // of all markers of the batch, made when first asked for
}

func (m *markerRow) seals() *seals { return &m.all()[m.index] }

// seals of a range: one of each for an interaction, in the order of offsets.
type seals struct{ event, interaction, verdict, texts []uint64 }

// markersTable has the batch's markers; interactions and verdicts are the tables of its records, texts the rows of
// their texts.
func (s *Sink) markersTable(b *sinks.Batch, interactions, verdicts *table, texts textList) (*table, error) {
	event, err1 := newSealer(seal.Event, interactions)
	row, err2 := newSealer(seal.Interaction, interactions)
	verdict, err3 := newSealer(seal.Verdict, verdicts)
	if err := cmp.Or(err1, err2, err3); err != nil {
		return nil, err
	}
	now := time.Now()
	rows := make([]markerRow, len(b.Markers))
	all := sync.OnceValue(func() []seals { return sealsOf(b, event, row, verdict, texts) })
	for i, m := range b.Markers {
		rows[i] = markerRow{Marker: m, at: now, index: i, all: all}
	}
	t := markersTable(rows)
	key := s.opt.Seal
	add(t, "seal_version", rows, func(*markerRow) uint8 { return seal.Version })
	add(t, "sealed_at", rows, func(m *markerRow) int64 { return m.at.UnixMilli() })
	add(t, "seals.event", rows, func(m *markerRow) []uint64 { return m.seals().event })
	add(t, "seals.interaction", rows, func(m *markerRow) []uint64 { return m.seals().interaction })
	add(t, "seals.verdict", rows, func(m *markerRow) []uint64 { return m.seals().verdict })
	add(t, "seals.texts", rows, func(m *markerRow) []uint64 { return m.seals().texts })
	add(t, "signer", rows, func(*markerRow) string {
		if key == nil {
			return ""
		}
		return key.ID()
	})
	whole, err := newSealer(seal.Marker, t)
	add(t, "signature", rows, func(m *markerRow) string {
		if key == nil {
			return ""
		}
		return string(key.Sign(sha256.Sum256(whole.canonical(nil, m.index))))
	})
	return t, err
}

// sealsOf makes the seals of all records of a batch, by marker.
func sealsOf(b *sinks.Batch, event, row, verdict sealer, texts textList) []seals {
	if len(b.Records) == 0 {
		return make([]seals, len(b.Markers))
	}
	type partition struct {
		topic     string
		partition int
	}
	of := make(map[partition]int, len(b.Markers))
	out := make([]seals, len(b.Markers))
	for i, m := range b.Markers {
		of[partition{m.Topic, m.Partition}] = i
		n := int(m.Rows)
		out[i] = seals{make([]uint64, 0, n), make([]uint64, 0, n), make([]uint64, 0, n), make([]uint64, 0, n)}
	}
	var scratch []byte
	hash := func(s *sealer, i int) uint64 {
		scratch = s.canonical(scratch[:0], i)
		return seal.Hash(scratch)
	}
	for i := range b.Records {
		o := &b.Records[i].Origin
		at, ok := of[partition{o.Topic, o.Partition}]
		if !ok {
			continue // halves of a batch that is refused are tried without markers
		}
		x := &out[at]
		x.event = append(x.event, hash(&event, i))
		x.interaction = append(x.interaction, hash(&row, i))
		x.verdict = append(x.verdict, hash(&verdict, i))
		var texted uint64
		texted, scratch = texts.seal(scratch, i)
		x.texts = append(x.texts, texted)
	}
	return out
}

// seal is the hash of the i-th record's texts; b is a scratch buffer, which it hands back.
func (l textList) seal(b []byte, i int) (uint64, []byte) {
	from := 0
	if i > 0 {
		from = l.ends[i-1]
	}
	var held [16]*text
	of := held[:0]
	for j := from; j < l.ends[i]; j++ {
		if !slices.Contains(seal.MadeAgain[:], l.rows[j].kind) {
			of = append(of, &l.rows[j])
		}
	}
	slices.SortFunc(of, func(x, y *text) int { return cmp.Compare(x.kind, y.kind) })
	h := sha256.New()
	h.Write([]byte(seal.TextsPrefix))
	var digest [sha256.Size]byte
	for _, t := range of {
		b = append(b[:0], t.text...)
		digest = sha256.Sum256(b)
		b = seal.AppendFixed(seal.AppendText(b[:0], t.kind), digest[:], sha256.Size)
		h.Write(b)
	}
	h.Sum(digest[:0])
	return binary.LittleEndian.Uint64(digest[:8]), b
}

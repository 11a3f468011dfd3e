package store

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/internal/seal"
)

// takenTexts is what explains that texts are gone.
type takenTexts struct {
	dropped  map[tenantDay]bool   // days whose texts retention dropped
	signed   map[uint64]bool      // interactions and texts that came later, as their seals name them, that signed erasures took
	unsigned map[uint64]bool      // the same of erasures without a signature
	unnamed  map[tenantDay]uint64 // how many, at most, erasures of programs took that did not say which
	// How many rows of texts, at most, erasures took of a day that did not name those that came later: signed ones, and others.
	rowsSigned, rows map[tenantDay]uint64
	faults           erasureFaults
}

// goneTexts is an interaction whose texts are gone.
type goneTexts struct {
	tenantDay
	event  uint64
	id     uuid.UUID
	signed bool // its seal is
}

// erasureFaults collects what is wrong with what erasures say they took, by code and day.
type erasureFaults map[FaultCode]map[string]*Fault

func (f erasureFaults) add(code FaultCode, day string) {
	if f[code] == nil {
		f[code] = map[string]*Fault{}
	}
	x := f[code][day]
	if x == nil {
		x = &Fault{Code: code, Table: tableErased, Day: day}
		f[code][day] = x
	}
	x.Count++
}

func (f erasureFaults) report(r *Report) {
	for _, code := range []FaultCode{FaultSealUnknown, FaultSealBroken, FaultErasureMissing} {
		sealFaults(f[code]).report(r)
	}
}

// tableErased names the interactions that erasures took.
const tableErased = "texts_erased"

// textsTaken reads what explains that texts are gone.
func (s *Store) textsTaken(ctx context.Context, r *Report) (takenTexts, error) {
	t := takenTexts{map[tenantDay]bool{}, map[uint64]bool{}, map[uint64]bool{}, map[tenantDay]uint64{}, map[tenantDay]uint64{}, map[tenantDay]uint64{}, erasureFaults{}}
	named, err := s.erasedByName(ctx, r, &t)
	if err != nil {
		return t, err
	}
	known, old, err := s.erasures(ctx) // later: what is named has a row there already
	if err != nil {
		return t, err
	}
	for _, x := range named {
		if !known[x.id] {
			t.faults.add(FaultErasureMissing, x.day)
		}
	}
	sql := s.from("retention_runs").current().and("object = 'interaction_texts'").sql("tenant_id, toString(period), action = 'erase', at, sum(rows)", "GROUP BY tenant_id, period, action, at")
	return t, s.each(ctx, "store: check texts taken", sql, nil, func(rows driver.Rows) error {
		var x tenantDay
		var erased uint8
		var at time.Time
		var n uint64
		if err := rows.Scan(&x.tenant, &x.day, &erased, &at, &n); err != nil {
			return err
		}
		switch {
		case erased == 0:
			t.dropped[x] = true
		case old[erasedAt{x.tenant, at.UnixMilli()}] && !at.After(r.At.Add(slack)):
			t.unnamed[x] += n
			t.rows[x] += n
		}
		return nil
	})
}

// erasureDay is what an erasure took of a day.
type erasureDay struct {
	id  uuid.UUID
	day string
}

// erasedByName reads which interactions erasures took. What is not what its signature is of explains nothing.
func (s *Store) erasedByName(ctx context.Context, r *Report, t *takenTexts) (named []erasureDay, err error) {
	sql := s.from(tableErased).current().sql("erasure_id, tenant_id, toString(event_day), at, seal_version, texts, events, signer, signature, "+seal.Erasure.DigestSQL(), "ORDER BY event_day")
	return named, s.each(ctx, "store: check what erasures took", sql, nil, func(rows driver.Rows) error {
		var id uuid.UUID
		var tenant, day, signer, signature, digest string
		var at time.Time
		var version uint8
		var texts uint64
		var events []uint64
		if err := rows.Scan(&id, &tenant, &day, &at, &version, &texts, &events, &signer, &signature, &digest); err != nil {
			return err
		}
		keys := r.opt.Keys
		of, rowsOf := t.signed, t.rowsSigned
		switch _, known := keys[signer]; {
		case version != seal.Version:
			t.faults.add(FaultSealBroken, day)
			return nil
		case signer == "" && signature == "":
			if of, rowsOf = t.unsigned, t.rows; at.After(r.At.Add(slack)) {
				return nil
			}
		case len(keys) == 0: // no signature is checked
		case !known:
			t.faults.add(FaultSealUnknown, day)
			return nil
		case !keys.Verify(signer, []byte(digest), []byte(signature)):
			t.faults.add(FaultSealBroken, day)
			return nil
		}
		named = append(named, erasureDay{id, day})
		rowsOf[tenantDay{tenant, day}] += texts
		for _, e := range events {
			of[e] = true
		}
		return nil
	})
}

// erasedAt names an erasure as retention_runs does.
type erasedAt struct {
	tenant string
	at     int64 // in milliseconds
}

// erasures reads which there are; old are those of programs that did not write down which interactions they took.
func (s *Store) erasures(ctx context.Context) (known map[uuid.UUID]bool, old map[erasedAt]bool, err error) {
	known, old = map[uuid.UUID]bool{}, map[erasedAt]bool{}
	sql := s.from("erasures").current().sql("erasure_id, tenant_id, at, interactions < 0", "")
	return known, old, s.each(ctx, "store: check erasures", sql, nil, func(rows driver.Rows) error {
		var id uuid.UUID
		var x erasedAt
		var at time.Time
		var unnamed uint8
		if err := rows.Scan(&id, &x.tenant, &at, &unnamed); err != nil {
			return err
		}
		if known[id] = true; unnamed == 1 {
			x.at = at.UnixMilli()
			old[x] = true
		}
		return nil
	})
}

// explained counts texts that are gone where retention or an erasure took them. Whose seal is signed needs an erasure that
// is, too: else who can write to the store could delete texts and say that they were erased.
func (c *sealCheck) explained(x goneTexts) bool {
	seals, t := c.r.Seals, &c.taken
	switch {
	case t.dropped[x.tenantDay]:
		seals.TextsDropped++
	case t.signed[x.event]:
		seals.TextsErased++
	case x.signed:
		return false
	case t.unsigned[x.event]:
		seals.TextsErasedUnsigned++
	case c.spent[x.tenantDay] < t.unnamed[x.tenantDay]:
		c.spent[x.tenantDay]++
		seals.TextsErasedUnsigned++
	default:
		return false
	}
	return true
}

// deletedTexts looks again at what explains that texts are gone, for an erasure may have begun since, and reports the others.
func (s *Store) deletedTexts(ctx context.Context, c *sealCheck, gone []goneTexts) (err error) {
	if c.taken, err = s.textsTaken(ctx, c.r); err != nil {
		return err
	}
	deleted := sealFaults{}
	for _, x := range gone {
		if !c.explained(x) {
			deleted.add(FaultTextDeleted, x.day, x.id)
		}
	}
	deleted.report(c.r)
	return nil
}

package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/internal/seal"
)

// FactSealReport says what was compared with the seals of fact_seals: verdicts that came later than their interaction, reviews, feedback, reveals, gates,
// and their texts.
type FactSealReport struct {
	Writers      uint64     `json:"writers"`                // starts of processes, or of their parts
	Rows         uint64     `json:"rows"`                   // that they wrote
	Signed       uint64     `json:"signed"`                 // of them, those whose signature was checked
	Signers      []string   `json:"signers,omitempty"`      // ids of keys
	Since        *time.Time `json:"since,omitempty"`        // when the oldest was made
	Facts        uint64     `json:"facts"`                  // rows that agree with their seals or are faults
	Texts        uint64     `json:"texts"`                  // the same of their texts
	TextsDropped uint64     `json:"texts_dropped,omitzero"` // that retention dropped
	TextsErased  uint64     `json:"texts_erased,omitzero"`  // that erasures of persons took
	Purged       uint64     `json:"purged,omitzero"`        // rows of months that retention deleted
	Unfinished   uint64     `json:"unfinished,omitzero"`    // rows that a writer sealed and did not say that they are in: it failed, or ended meanwhile
	Unsealed     uint64     `json:"unsealed,omitzero"`      // rows and texts of before there were seals
	// TextsErasedUnsigned are texts whose seals nobody signed, that erasures took which nobody signed either.
	TextsErasedUnsigned uint64 `json:"texts_erased_unsigned,omitzero"`
	// UnsignedRows have no signature though others have one, and say that they are from before, or from the day after; UnsignedFacts are what they alone
	// speak of. Nobody proves these.
	UnsignedRows  uint64 `json:"unsigned_rows,omitzero"`
	UnsignedFacts uint64 `json:"unsigned_facts,omitzero"`
}

// laterRows are the rows of a table that seal.Facts speaks of; "" are all.
var laterRows = map[string]string{
	"verdicts":          "NOT (analyzer = 'hot' AND analyzer_version = '')",
	"interaction_texts": "(" + seal.ErasedLaterSQL() + " OR kind = '" + seal.RevealReason + "')",
}

const factTexts = "interaction_texts"

// isSigned is the condition that a marker or a row of fact_seals has a signature, whether or not it holds.
const isSigned = "(signer != '' OR signature != '')"

// factSeal is a seal of a row of a table.
type factSeal struct {
	name, row, version, tenant uint64
	day                        uint16
	table                      uint8 // of seal.Facts
	confirmed                  bool  // its writer said that the row is in
	signed, late               bool  // late: after the day of the upgrade
	counts                     bool  // see ledgerProof
	found                      bool
}

// writerOfSeals is what a row's place in its chain hangs on.
type writerOfSeals struct{ n, stored uint64 }

// voidSeal is a seal whose row could not be written.
type voidSeal struct {
	writer  uuid.UUID
	n, name uint64
}

// factCheck is what a check of facts has read.
type factCheck struct {
	r       *Report
	before  time.Time // rows that were written before it must have a seal that was read
	since   time.Time // from when on the program sealed
	writers map[uuid.UUID]writerOfSeals
	void    map[voidSeal]bool
	seals   []factSeal           // of this pass, ordered by name
	purged  map[goneMonth]uint64 // rows that deleted months explain, of all passes
	erased  map[goneDay]uint64   // the same of texts and signed erasures that did not name them
	also    map[goneDay]uint64   // and of unsigned ones
	signed  ledgerProof
	passing
}

// checkFacts compares what came later than its interaction with the seals of fact_seals, and these with their chains and signatures.
func (s *Store) checkFacts(ctx context.Context, r *Report) error {
	r.FactSeals = &FactSealReport{}
	c := &factCheck{r: r}
	var err error
	if c.before, err = s.Now(ctx); err != nil {
		return err
	}
	if c.before = c.before.Add(-slack); r.opt.AtRest {
		c.before = r.At.Add(24 * time.Hour)
	}
	seals, err := s.checkLedgers(ctx, c)
	if err != nil || r.FactSeals.Rows == 0 {
		return err
	}
	c.passes, c.purged, c.erased, c.also = seals/sealsAtOnce+1, map[goneMonth]uint64{}, map[goneDay]uint64{}, map[goneDay]uint64{}
	for c.pass = range c.passes {
		if err := s.readFactSeals(ctx, c); err != nil {
			return err
		}
		for table := range seal.Facts {
			if err := s.checkFactTable(ctx, c, table); err != nil {
				return err
			}
			r.tell("facts", int(c.pass)*len(seal.Facts)+table+1, int(c.passes)*len(seal.Facts))
		}
		if err := s.missingFacts(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// ledgerFaults collects what is wrong by writer, over the range of its rows.
type ledgerFaults struct {
	code  FaultCode
	found []*Fault
}

// add adds n rows of a writer from lo to hi; writers come one after the other.
func (f *ledgerFaults) add(writer string, n uint64, lo, hi uint64) {
	if last := len(f.found) - 1; last < 0 || f.found[last].Writer != writer {
		f.found = append(f.found, &Fault{Code: f.code, Table: "fact_seals", Writer: writer, Lo: int64(lo)})
	}
	x := f.found[len(f.found)-1]
	x.Count, x.Hi = x.Count+n, int64(hi)
}

// checkLedgers verifies the chains and signatures and gives the number of seals.
func (s *Store) checkLedgers(ctx context.Context, c *factCheck) (seals uint64, err error) {
	const op = "store: check ledgers"
	var first, signed time.Time
	rep := c.r.FactSeals
	all := s.from("fact_seals").current()
	if err := s.one(ctx, op, all.sql("count(), min(sealed_at), minIf(sealed_at, "+isSigned+")", ""), nil, &rep.Rows, &first, &signed); err != nil || rep.Rows == 0 {
		return 0, err
	}
	first = first.UTC()
	rep.Since, c.since = &first, first.Add(upgrade)
	c.writers, c.void = map[uuid.UUID]writerOfSeals{}, map[voidSeal]bool{}
	c.signed = ledgerProof{signs: map[uuid.UUID]bool{}, refused: map[ledgerPlace]bool{}}
	if signed.Unix() > 0 {
		c.signed.since = signed
	}
	signers, witnessed := map[string]bool{}, map[uint64]uint64{}
	missing, broken := ledgerFaults{code: FaultSealMissing}, ledgerFaults{code: FaultSealBroken}
	unknown, unsigned := ledgerFaults{code: FaultSealUnknown}, ledgerFaults{code: FaultSealUnsigned}
	var last struct {
		writer uuid.UUID
		digest string
		day    time.Time
	}
	of := func(object, column string) string {
		return "arrayFilter((x, o) -> o = '" + object + "', seals." + column + ", seals.object)"
	}
	rep.Rows = 0
	sql := all.sql("writer, n, seal_version, sealed_at, stored, before, signer, signature, "+seal.Ledger.DigestSQL()+", countEqual(arrayMap(o -> o IN ('"+seal.Void+"', '"+seal.Witness+"'), seals.object), 0), "+
		of(seal.Void, "row")+", "+of(seal.Void, "name")+", "+of(seal.Witness, "name")+", "+of(seal.Witness, "row"), "ORDER BY writer, n")
	err = s.each(ctx, op, sql, nil, func(rows driver.Rows) error {
		var id uuid.UUID
		var n, stored, some uint64
		var version uint8
		var at time.Time
		var before, signer, signature, digest string
		var voidRows, voidNames, others, have []uint64
		if err := rows.Scan(&id, &n, &version, &at, &stored, &before, &signer, &signature, &digest, &some, &voidRows, &voidNames, &others, &have); err != nil {
			return err
		}
		rep.Rows++
		seals += some
		w, name := c.writers[id], id.String()
		if last.writer != id {
			last.writer, last.digest, last.day = id, string(make([]byte, 32)), time.Time{}
		}
		bad := version > seal.Version || n == 0
		if n > w.n+1 {
			missing.add(name, n-w.n-1, w.n+1, n-1)
		} else {
			bad = bad || before != last.digest
		}
		day := at.UTC().Truncate(24 * time.Hour)
		is := signature != "" || signer != ""
		c.signed.row(ledgerPlace{id, n}, at, is, !day.Equal(last.day), others, have)
		last.digest, last.day = digest, day
		if _, known := c.r.opt.Keys[signer]; is && len(c.r.opt.Keys) > 0 {
			signers[signer] = true
			rep.Signed++
			if !known {
				unknown.add(name, 1, n, n)
			}
			bad = bad || known && !c.r.opt.Keys.Verify(signer, []byte(digest), []byte(signature))
		}
		if bad {
			broken.add(name, 1, n, n)
		}
		c.writers[id] = writerOfSeals{n, max(w.stored, stored)}
		for i := range voidRows {
			c.void[voidSeal{id, voidRows[i], voidNames[i]}] = true
		}
		for i := range others {
			witnessed[others[i]] = max(witnessed[others[i]], have[i])
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	rep.Writers, rep.Signers = uint64(len(c.writers)), slices.Sorted(maps.Keys(signers))
	for _, id := range slices.SortedFunc(maps.Keys(c.writers), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }) {
		w, hash := c.writers[id], seal.WriterHash(id)
		if n := witnessed[hash]; n > w.n {
			missing.add(id.String(), n-w.n, w.n+1, n)
		}
		delete(witnessed, hash)
	}
	for _, hash := range slices.Sorted(maps.Keys(witnessed)) { // of writers of whom nothing is left
		missing.add(fmt.Sprintf("%016x", hash), witnessed[hash], 1, witnessed[hash])
	}
	rep.UnsignedRows = c.signed.report(&unsigned)
	for _, f := range []ledgerFaults{missing, broken, unknown, unsigned} {
		for _, x := range f.found {
			c.r.fault(*x)
		}
	}
	return seals, nil
}

// readFactSeals reads the seals of a pass.
func (s *Store) readFactSeals(ctx context.Context, c *factCheck) error {
	c.seals = c.seals[:0]
	tables := map[string]uint8{}
	for i, f := range seal.Facts {
		tables[f.Table] = uint8(i)
	}
	sql := s.from("fact_seals").current().sql("writer, n, sealed_at, "+isSigned+", seals.object, arrayMap(d -> toUInt16(d), seals.day), seals.tenant, seals.name, seals.version, seals.row", "")
	err := s.each(ctx, "store: check fact seals", sql, nil, func(rows driver.Rows) error {
		var id uuid.UUID
		var n uint64
		var at time.Time
		var signed uint8
		var objects []string
		var days []uint16
		var tenants, names, versions, hashes []uint64
		if err := rows.Scan(&id, &n, &at, &signed, &objects, &days, &tenants, &names, &versions, &hashes); err != nil {
			return err
		}
		stored, late := n <= c.writers[id].stored, !c.signed.since.IsZero() && at.After(c.signed.until())
		for i, o := range objects {
			table, ok := tables[o]
			if !ok || names[i]%c.passes != c.pass {
				continue
			}
			x := factSeal{name: names[i], row: hashes[i], version: versions[i], tenant: tenants[i], day: days[i], table: table, signed: signed == 1, late: late}
			x.confirmed = stored && !c.void[voidSeal{id, n, names[i]}]
			x.counts = x.signed || c.signed.counts(unsignedRow{ledgerPlace{id, n}, at}, x.day)
			c.seals = append(c.seals, x)
		}
		return nil
	})
	slices.SortFunc(c.seals, func(x, y factSeal) int { return cmp.Compare(x.name, y.name) })
	return err
}

// of gives the seals of a row: one for each time that it was written.
func (c *factCheck) of(name uint64) []factSeal {
	return sealsNamed(c.seals, name, func(x factSeal) uint64 { return x.name })
}

// writtenAgain are the interactions whose reviews migration 34 wrote once more, with another time of writing: when they were made, they say themselves. Who
// puts in a review by hand can state either time.
func (s *Store) writtenAgain() string {
	return s.from("reviews").sql("tenant_id, event_day, event_id", "GROUP BY tenant_id, event_day, event_id HAVING uniqExact(reviewer) > 1 AND countIf(decision = 'unsure') > 0 AND countIf(decision IN ('confirmed', 'dismissed')) > 0")
}

// checkFactTable compares the rows of a table, a chunk at a time.
func (s *Store) checkFactTable(ctx context.Context, c *factCheck, table int) error {
	const op = "store: check facts"
	f := seal.Facts[table]
	cond, name := cmp.Or(laterRows[f.Table], "1"), f.Name().SQL(nil)
	written, made, count, before := "written_at", "written_at", &c.r.FactSeals.Facts, c.before
	if f.Table == "reviews" {
		made = "if((tenant_id, event_day, event_id) IN (" + s.writtenAgain() + "), least(written_at, reviewed_at), written_at)"
	}
	if f.Table == factTexts { // when the fact was made, which may be a while before it is written
		before = before.Add(-grace)
		written, count = "fromUnixTimestamp64Milli(toInt64(least(version, 9000000000000)), 'UTC')", &c.r.FactSeals.Texts
		made = written
	}
	days, counts, err := s.rowsByDay(ctx, op, s.from(f.Table).and(cond).sql("toString(event_day) AS d, count()", "GROUP BY d ORDER BY d"))
	if err != nil {
		return err
	}
	for _, x := range chunks(days, counts) {
		altered, added := sealFaults{}, sealFaults{}
		q := c.ofPass(x.bind(s.from(f.Table).current()).and(cond), name)
		sql := q.sql(name+" AS e, "+f.SQL(nil)+" AS h, "+written+" AS at, "+made+" AS made, event_day, event_id", "SETTINGS "+spill)
		err := s.each(ctx, op, sql, q.args, func(rows driver.Rows) error {
			var key, hash uint64
			var at, made, day time.Time
			var id uuid.UUID
			if err := rows.Scan(&key, &hash, &at, &made, &day, &id); err != nil {
				return err
			}
			seals := c.of(key)
			for i := range seals {
				seals[i].found = true
			}
			// What is being written may have a seal that was not read. What claims to be of the future is judged, and of two times the later one
			// counts, since an event is known a day ahead at the most.
			settled := at.Before(before) || at.After(c.r.At.Add(slack))
			old := !made.After(c.since) && !day.Add(-24*time.Hour).After(c.since)
			ok, signed := agrees(seals, hash)
			switch {
			case ok:
				if *count++; !signed && !c.signed.since.IsZero() {
					c.r.FactSeals.UnsignedFacts++
				}
			case !settled:
			case slices.ContainsFunc(seals, func(x factSeal) bool { return x.counts }):
				*count++
				altered.add(FaultFactAltered, day.Format(time.DateOnly), id)
			case old:
				c.r.FactSeals.Unsealed++
			default:
				*count++
				added.add(FaultFactAdded, day.Format(time.DateOnly), id)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, faults := range []sealFaults{altered, added} {
			for _, x := range faults {
				x.Table = f.Table
			}
			faults.report(c.r)
		}
	}
	return nil
}

// gone is what retention and erasures took, by the hash of the tenant.
type gone struct {
	months  map[goneMonth]uint64 // with the rows that they had
	dropped map[goneDay]bool     // texts
	taken   takenTexts
	erased  map[goneDay]uint64 // texts, how many at most, of signed erasures
	also    map[goneDay]uint64 // the same of unsigned ones
	reasons map[uint64]bool    // texts that no erasure takes
}

type goneMonth struct {
	table  uint8
	tenant uint64
	month  string
}

type goneDay struct {
	tenant uint64
	day    string
}

func (s *Store) goneFacts(ctx context.Context, r *Report) (g gone, err error) {
	g = gone{months: map[goneMonth]uint64{}, dropped: map[goneDay]bool{}, erased: map[goneDay]uint64{}, also: map[goneDay]uint64{}, reasons: map[uint64]bool{}}
	if g.taken, err = s.textsTaken(ctx, r); err != nil {
		return g, err
	}
	for x := range g.taken.dropped {
		g.dropped[goneDay{seal.TenantHash(x.tenant), x.day}] = true
	}
	for x, n := range g.taken.rowsSigned {
		g.erased[goneDay{seal.TenantHash(x.tenant), x.day}] += n
	}
	for x, n := range g.taken.rows {
		g.also[goneDay{seal.TenantHash(x.tenant), x.day}] += n
	}
	if err := s.reasons(ctx, g.reasons); err != nil {
		return g, err
	}
	sql := s.from("retention_runs").current().sql("object, tenant_id, toString(period), toUInt64(sum(rows))", "GROUP BY object, tenant_id, period")
	return g, s.each(ctx, "store: check deleted months", sql, nil, func(rows driver.Rows) error {
		var object, tenant, month string
		var n uint64
		if err := rows.Scan(&object, &tenant, &month, &n); err != nil {
			return err
		}
		table := slices.IndexFunc(seal.Facts[:], func(f seal.Fact) bool { return f.Table == object })
		if table >= 0 && object != factTexts {
			g.months[goneMonth{uint8(table), seal.TenantHash(tenant), month}] += n
		}
		return nil
	})
}

// reasons reads how the reasons of reveals are named.
func (s *Store) reasons(ctx context.Context, of map[uint64]bool) error {
	return s.each(ctx, "store: check reasons", s.from("reveals").current().sql(seal.ReasonNameSQL(), ""), nil, func(rows driver.Rows) error {
		var name uint64
		if err := rows.Scan(&name); err != nil {
			return err
		}
		of[name] = true
		return nil
	})
}

// erasedText counts a text that is gone where an erasure took it. Whose seal is signed needs one that is, too; and what erasures took that did not
// name it is a number of texts, of which none is the reason of a reveal.
func (c *factCheck) erasedText(g *gone, on goneDay, name uint64, signed bool) bool {
	rep, reason := c.r.FactSeals, g.reasons[name]
	switch {
	case g.taken.signed[name]:
		rep.TextsErased++
	case !reason && c.erased[on] < g.erased[on]:
		c.erased[on]++
		rep.TextsErased++
	case signed:
		return false
	case g.taken.unsigned[name]:
		rep.TextsErasedUnsigned++
	case !reason && c.also[on] < g.also[on]:
		c.also[on]++
		rep.TextsErasedUnsigned++
	default:
		return false
	}
	return true
}

// missingFacts reports seals whose row is not in the store.
func (s *Store) missingFacts(ctx context.Context, c *factCheck) error {
	g, err := s.goneFacts(ctx, c.r) // as it is after the rows were read
	if err != nil {
		return err
	}
	type place struct {
		table uint8
		day   uint16
	}
	deleted, rep := map[place]uint64{}, c.r.FactSeals
	for i := 0; i < len(c.seals); {
		of := c.of(c.seals[i].name)
		i += len(of)
		x := of[0]
		if x.found {
			continue
		}
		day := time.Unix(int64(x.day)*86400, 0).UTC()
		texts := seal.Facts[x.table].Table == factTexts
		on := goneDay{x.tenant, day.Format(time.DateOnly)}
		month := goneMonth{x.table, x.tenant, day.AddDate(0, 0, 1-day.Day()).Format(time.DateOnly)}
		switch {
		case !slices.ContainsFunc(of, func(x factSeal) bool { return x.confirmed }):
			rep.Unfinished++
		case texts && g.dropped[on]:
			rep.TextsDropped++
		case texts && c.erasedText(&g, on, x.name, slices.ContainsFunc(of, func(x factSeal) bool { return x.signed })):
		case !texts && c.purged[month] < g.months[month]:
			c.purged[month]++
			rep.Purged++
		default:
			deleted[place{x.table, x.day}]++
		}
	}
	for _, x := range slices.SortedFunc(maps.Keys(deleted), func(a, b place) int { return cmp.Or(cmp.Compare(a.table, b.table), cmp.Compare(a.day, b.day)) }) {
		c.r.fault(Fault{Code: FaultFactDeleted, Count: deleted[x], Table: seal.Facts[x.table].Table, Day: time.Unix(int64(x.day)*86400, 0).UTC().Format(time.DateOnly)})
	}
	return nil
}

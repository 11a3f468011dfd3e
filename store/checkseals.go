package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/internal/seal"
)

// SealReport says what was compared with the seals of the markers.
type SealReport struct {
	Markers      uint64     `json:"markers"`                   // with seals
	Unsealed     uint64     `json:"unsealed_markers,omitzero"` // of programs that made none
	Signed       uint64     `json:"signed"`                    // markers whose signature was checked
	Signers      []string   `json:"signers,omitempty"`         // ids of keys
	Since        *time.Time `json:"since,omitempty"`           // when the oldest of the seals was made
	Deliveries   uint64     `json:"deliveries"`                // seals
	Interactions uint64     `json:"interactions"`              // rows that agree with theirs or are faults
	Verdicts     uint64     `json:"verdicts"`
	Texts        uint64     `json:"texts"`                  // interactions whose texts stand, or that had none
	TextsDropped uint64     `json:"texts_dropped,omitzero"` // interactions whose texts retention dropped
	TextsErased  uint64     `json:"texts_erased,omitzero"`  // interactions whose texts an erasure names
	// TextsErasedUnsigned are the same of interactions whose seals nobody signed, by erasures that nobody signed either.
	TextsErasedUnsigned uint64 `json:"texts_erased_unsigned,omitzero"`
	Purged              uint64 `json:"purged,omitzero"` // interactions of months that retention deleted
	// UnsignedMarkers have no signature though others have one, and say that they are from before; UnsignedInteractions are
	// those that stand there. What these hold nobody proves.
	UnsignedMarkers      uint64 `json:"unsigned_markers,omitzero"`
	UnsignedInteractions uint64 `json:"unsigned_interactions,omitzero"`
	UnsealedInteractions uint64 `json:"unsealed_interactions,omitzero"` // the same of markers without seals
	SealedElsewhere      uint64 `json:"sealed_elsewhere,omitzero"`      // of them, those that came again and got a seal then, which is not of the row that stands
}

// sealsAtOnce bounds the memory of a check of seals, 40 bytes each; more are looked at in several passes.
const sealsAtOnce = 5_000_000

// sealed is a seal, with the marker that it stands in.
type sealed struct {
	event, interaction, verdict, texts uint64
	marker                             int32
	found                              bool // the interaction stands in the store
	counts                             bool // and what stands must agree with it, or with another that counts
}

// sealedMarker is what of a marker says where its seals belong.
type sealedMarker struct {
	logKey
	span
	signed bool
}

// sealCheck is what a check of seals has read.
type sealCheck struct {
	r       *Report
	keys    seal.Public
	markers []sealedMarker
	places  map[logKey][]span // that sealed markers cover, in order
	signed  map[logKey][]span // the same of signed ones
	others  map[logKey][]span // the same of markers without seals
	gaps    map[logKey][]span // ranges that the log no longer held, of markers with seals
	at      settled
	seals   []sealed              // of this pass, ordered by event
	passed  map[eventDay]struct{} // of this pass, interactions that seals name and that stand where none is compared

	sealedAt, signedAt proof
	told               map[logKey][]span // markers that cannot be from before those
	passing
	taken takenTexts
	spent map[tenantDay]uint64 // of what takenTexts.unnamed allows
}

// passing is which of several passes looks at what.
type passing struct{ pass, passes uint64 }

type tenantDay struct{ tenant, day string }

type eventDay struct {
	event uint64
	day   string
}

// checkSeals compares every row with the seal that its marker holds, and the markers with their signatures: so it tells
// what was altered, deleted or added behind the program's back.
func (s *Store) checkSeals(ctx context.Context, r *Report) error {
	r.Seals = &SealReport{}
	c := &sealCheck{r: r, keys: r.opt.Keys}
	if err := s.sealedMarkers(ctx, c); err != nil || r.Seals.Markers == 0 {
		return err
	}
	var err error
	if c.taken, err = s.textsTaken(ctx, r); err != nil {
		return err
	}
	c.spent = map[tenantDay]uint64{}
	c.taken.faults.report(r)
	if c.at, err = s.settled(ctx, r); err != nil {
		return err
	}
	c.passes = r.Seals.Deliveries/sealsAtOnce + 1
	for c.pass = range c.passes {
		if err := s.readSeals(ctx, c); err != nil {
			return err
		}
		// After the seals: rows are written before their markers, so no day is left out that a seal was read of.
		all, err := s.dayChunks(ctx, "store: check seals")
		if err != nil {
			return err
		}
		for i, x := range all {
			if err := s.checkSealed(ctx, c, x); err != nil {
				return err
			}
			r.tell("seals", int(c.pass)*len(all)+i+1, int(c.passes)*len(all))
		}
		if err := s.missing(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// sealedMarkers verifies the signatures and notes which places have seals.
func (s *Store) sealedMarkers(ctx context.Context, c *sealCheck) error {
	const op = "store: check markers"
	c.places, c.signed, c.others, c.gaps = map[logKey][]span{}, map[logKey][]span{}, map[logKey][]span{}, map[logKey][]span{}
	var without, unsigned []unproved
	signers := map[string]bool{}
	unknown, broken := markerFaults{}, markerFaults{}
	sql := s.from("ingest_batches").current().sql("topic, epoch, partition, lo, hi, rows, reason, seal_version, sealed_at, written_at, length(seals.event), signer, signature, "+seal.Marker.DigestSQL(),
		"ORDER BY topic, epoch, partition, lo, hi")
	err := s.each(ctx, op, sql, nil, func(rows driver.Rows) error {
		var m sealedMarker
		var n uint32
		var version uint8
		var at, written time.Time
		var seals uint64
		var reason, signer, signature, digest string
		if err := rows.Scan(&m.topic, &m.epoch, &m.partition, &m.lo, &m.hi, &n, &reason, &version, &at, &written, &seals, &signer, &signature, &digest); err != nil {
			return err
		}
		if version == 0 {
			c.others[m.logKey] = append(c.others[m.logKey], m.span)
			if without = append(without, unproved{m, written}); n > 0 {
				c.r.Seals.Unsealed++
			}
			return nil
		}
		c.r.Seals.Markers++
		c.r.Seals.Deliveries += seals
		c.sealedAt.add(m, at)
		bad := seals != uint64(n) || version > seal.Version
		if m.signed = signer != "" || signature != ""; m.signed {
			c.signedAt.add(m, at)
		} else {
			unsigned = append(unsigned, unproved{m, at})
		}
		if _, known := c.keys[signer]; m.signed && len(c.keys) > 0 {
			signers[signer] = true
			c.r.Seals.Signed++
			if !known {
				unknown.add(FaultSealUnknown, m)
			}
			bad = bad || known && !c.keys.Verify(signer, []byte(digest), []byte(signature))
		}
		if bad {
			broken.add(FaultSealBroken, m)
		}
		if reason == "gap" {
			c.gaps[m.logKey] = append(c.gaps[m.logKey], m.span)
			return nil
		}
		c.places[m.logKey] = append(c.places[m.logKey], m.span)
		if m.signed {
			c.signed[m.logKey] = append(c.signed[m.logKey], m.span)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, places := range []map[logKey][]span{c.places, c.signed, c.others, c.gaps} {
		for k := range places {
			places[k] = united(places[k])
		}
	}
	unknown.report(c.r)
	broken.report(c.r)
	c.r.Seals.Signers = slices.Sorted(maps.Keys(signers))
	if first := c.sealedAt.since; !first.IsZero() {
		c.r.Seals.Since = &first
	}
	c.told = map[logKey][]span{}
	c.unproved(FaultSealMissing, &c.sealedAt, without)
	excused := c.unproved(FaultSealUnsigned, &c.signedAt, unsigned)
	if !c.signedAt.since.IsZero() {
		c.r.Seals.UnsignedMarkers = excused
	}
	for k, told := range c.told {
		slices.SortFunc(told, func(x, y span) int { return cmp.Compare(x.lo, y.lo) })
		c.told[k] = united(told)
	}
	return nil
}

// unproved reports the markers that cannot be from before the others, and counts the rest.
func (c *sealCheck) unproved(code FaultCode, p *proof, ms []unproved) (excused uint64) {
	p.order()
	for _, m := range ms {
		if p.excuses(m) {
			excused++
			continue
		}
		c.told[m.logKey] = append(c.told[m.logKey], m.span)
		c.r.fault(Fault{Code: code, Count: 1, Topic: m.topic, Partition: m.partition, Epoch: m.epoch, Lo: m.lo, Hi: m.hi})
	}
	return excused
}

// readSeals reads the seals of a pass.
func (s *Store) readSeals(ctx context.Context, c *sealCheck) error {
	c.markers, c.seals, c.passed = nil, c.seals[:0], map[eventDay]struct{}{}
	sql := s.from("ingest_batches").current().and("seal_version > 0").sql("topic, epoch, partition, lo, hi, seals.event, seals.interaction, seals.verdict, seals.texts, "+isSigned, "")
	err := s.each(ctx, "store: check seals", sql, nil, func(rows driver.Rows) error {
		var m sealedMarker
		var event, interaction, verdict, texts []uint64
		var signed uint8
		if err := rows.Scan(&m.topic, &m.epoch, &m.partition, &m.lo, &m.hi, &event, &interaction, &verdict, &texts, &signed); err != nil {
			return err
		}
		m.signed = signed == 1
		c.markers = append(c.markers, m)
		for i, e := range event {
			if e%c.passes == c.pass {
				c.seals = append(c.seals, sealed{event: e, interaction: interaction[i], verdict: verdict[i], texts: texts[i], marker: int32(len(c.markers) - 1)})
			}
		}
		return nil
	})
	slices.SortFunc(c.seals, func(x, y sealed) int { return cmp.Compare(x.event, y.event) })
	return err
}

// of gives the seals of an event and content: one for each delivery.
func (c *sealCheck) of(event uint64) []sealed {
	return sealsNamed(c.seals, event, func(x sealed) uint64 { return x.event })
}

// choose notes which seals of an interaction count that stands at a place: those of markers there, and where one of them is
// signed of signed ones alone; and of its verdict and texts those of other signed deliveries, too. here tells that there
// is one of this place.
func (c *sealCheck) choose(seals []sealed, k logKey, offset int64) (here, signed bool) {
	signed = covers(c.signed[k], offset)
	at := func(m sealedMarker) bool { return m.logKey == k && m.lo <= offset && offset <= m.hi }
	for _, x := range seals {
		m := c.markers[x.marker]
		signed = signed || m.signed && at(m)
	}
	for i := range seals {
		m := c.markers[seals[i].marker]
		counts := at(m) && (m.signed || !signed)
		here = here || counts
		seals[i].counts = seals[i].counts || counts || m.signed
	}
	return here, signed
}

// tells tells whether a fault of a marker names a place.
func (c *sealCheck) tells(k logKey, offset int64) bool {
	return covers(c.told[k], offset)
}

// agree tells whether what stands is what a seal that counts says.
func agree(seals []sealed, is func(sealed) bool) bool {
	return slices.ContainsFunc(seals, func(x sealed) bool { return x.counts && is(x) })
}

// compared tells whether the verdict and texts of an interaction are.
func (c *sealCheck) compared(seals []sealed, x eventDay) bool {
	_, passed := c.passed[x]
	return len(seals) > 0 && seals[0].found && !passed
}

// sealsNamed gives those of a name among seals that are ordered by it.
func sealsNamed[T any](all []T, name uint64, of func(T) uint64) []T {
	from, ok := slices.BinarySearchFunc(all, name, func(x T, n uint64) int { return cmp.Compare(of(x), n) })
	if !ok {
		return nil
	}
	to := from + 1
	for to < len(all) && of(all[to]) == name {
		to++
	}
	return all[from:to]
}

// covers tells whether one of some ordered spans covers an offset.
func covers(spans []span, offset int64) bool {
	i := sort.Search(len(spans), func(i int) bool { return spans[i].hi >= offset })
	return i < len(spans) && spans[i].lo <= offset
}

// united joins spans, ordered by where they begin, that overlap or touch.
func united(spans []span) (out []span) {
	for _, x := range spans {
		if last := len(out) - 1; last >= 0 && x.lo <= out[last].hi+1 {
			out[last].hi = max(out[last].hi, x.hi)
			continue
		}
		out = append(out, x)
	}
	return out
}

// markerFaults collects what is wrong by partition, over the ranges of its markers.
type markerFaults map[logKey]*Fault

func (f markerFaults) add(code FaultCode, m sealedMarker) {
	x := f[m.logKey]
	if x == nil {
		x = &Fault{Code: code, Topic: m.topic, Partition: m.partition, Epoch: m.epoch, Lo: m.lo, Hi: m.hi}
		f[m.logKey] = x
	}
	x.Count, x.Lo, x.Hi = x.Count+1, min(x.Lo, m.lo), max(x.Hi, m.hi)
}

func (f markerFaults) report(r *Report) {
	byPlace := func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Partition, b.Partition))
	}
	for _, x := range slices.SortedFunc(maps.Values(f), byPlace) {
		r.fault(*x)
	}
}

// sealFaults collects what is wrong by day.
type sealFaults map[string]*Fault

func (f sealFaults) add(code FaultCode, day string, event uuid.UUID) {
	x := f[day]
	if x == nil {
		x = &Fault{Code: code, Day: day}
		f[day] = x
	}
	if x.Count++; len(x.Events) < 10 {
		x.Events = append(x.Events, event.String())
	}
}

func (f sealFaults) report(r *Report) {
	for _, d := range slices.Sorted(maps.Keys(f)) {
		r.fault(*f[d])
	}
}

// checkSealed compares the rows of a chunk.
func (s *Store) checkSealed(ctx context.Context, c *sealCheck, x chunk) error {
	for _, step := range []func(context.Context, *sealCheck, chunk) error{s.sealedInteractions, s.sealedVerdicts, s.sealedTexts} {
		if err := step(ctx, c, x); err != nil {
			return err
		}
	}
	return nil
}

// ofPass restricts a query to the pass, by a hash.
func (c passing) ofPass(q *query, hash string) *query {
	if c.passes > 1 {
		q.and(fmt.Sprintf("%s %% %d = %d", hash, c.passes, c.pass))
	}
	return q
}

func (s *Store) sealedInteractions(ctx context.Context, c *sealCheck, x chunk) error {
	event := seal.Event.SQL(nil)
	altered, added, missing, unsigned := sealFaults{}, sealFaults{}, sealFaults{}, sealFaults{}
	q := c.ofPass(x.bind(s.from("interactions").current()), event)
	sql := q.sql(event+" AS e, "+seal.Interaction.SQL(nil)+", topic, epoch, partition, offset, written_at, event_day, event_id", "SETTINGS "+spill)
	err := s.each(ctx, "store: check sealed interactions", sql, q.args, func(rows driver.Rows) error {
		var event, hash uint64
		var k logKey
		var offset int64
		var written, on time.Time
		var id uuid.UUID
		if err := rows.Scan(&event, &hash, &k.topic, &k.epoch, &k.partition, &offset, &written, &on, &id); err != nil {
			return err
		}
		day := on.Format(time.DateOnly)
		seals := c.of(event)
		for i := range seals {
			seals[i].found = true
		}
		here, signed := c.choose(seals, k, offset)
		judged := here || covers(c.places[k], offset)
		other := !judged && covers(c.others[k], offset)
		gap := !judged && !other && covers(c.gaps[k], offset)
		// An earlier delivery may have come in meanwhile; else the row names a place that it never had.
		settled := written.Before(c.at.written) || written.After(c.r.At.Add(slack))
		if !judged && (other || len(seals) == 0 && !gap || !settled) { // of an older program, or not committed yet
			if len(seals) > 0 {
				c.passed[eventDay{event, day}] = struct{}{}
				if other {
					c.r.Seals.SealedElsewhere++
				}
			}
			if other {
				c.r.Seals.UnsealedInteractions++
				if c.sealedAt.tooNew(on) && !c.tells(k, offset) {
					missing.add(FaultSealMissing, day, id)
				}
			}
			return nil
		}
		if judged && !signed && !c.signedAt.since.IsZero() {
			c.r.Seals.UnsignedInteractions++
			if c.signedAt.tooNew(on) && !c.tells(k, offset) {
				unsigned.add(FaultSealUnsigned, day, id)
			}
		}
		switch {
		case len(seals) == 0:
			added.add(FaultInteractionAdded, day, id)
		case !agree(seals, func(x sealed) bool { return x.interaction == hash }):
			altered.add(FaultInteractionAltered, day, id)
		}
		c.r.Seals.Interactions++
		return nil
	})
	for _, f := range []sealFaults{missing, unsigned, altered, added} {
		f.report(c.r)
	}
	return err
}

func (s *Store) sealedVerdicts(ctx context.Context, c *sealCheck, x chunk) error {
	event := seal.Event.SQL(nil)
	altered := sealFaults{}
	q := c.ofPass(x.bind(s.from("verdicts").current()).and("analyzer = 'hot' AND analyzer_version = ''"), event)
	sql := q.sql(event+" AS e, "+seal.Verdict.SQL(nil)+", toString(event_day), event_id", "SETTINGS "+spill)
	err := s.each(ctx, "store: check sealed verdicts", sql, q.args, func(rows driver.Rows) error {
		var event, hash uint64
		var day string
		var id uuid.UUID
		if err := rows.Scan(&event, &hash, &day, &id); err != nil {
			return err
		}
		seals := c.of(event)
		if !c.compared(seals, eventDay{event, day}) {
			return nil
		}
		c.r.Seals.Verdicts++
		if !agree(seals, func(x sealed) bool { return x.verdict == hash }) {
			altered.add(FaultVerdictAltered, day, id)
		}
		return nil
	})
	altered.report(c.r)
	return err
}

func (s *Store) sealedTexts(ctx context.Context, c *sealCheck, x chunk) error {
	event := seal.Event.SQL(map[string]string{"content_digest": "source_id"})
	altered := sealFaults{}
	var gone []goneTexts // that nothing explains yet
	// Beside the rows of texts stands one of each interaction, so that those whose texts are gone are seen.
	q := c.ofPass(x.bind(s.from("interaction_texts").current()).and("kind IN ("+textKinds+")").and(seal.SealedSQL()), event)
	texts := q.sql("tenant_id, event_day, event_id, source_id, "+seal.TextsSQL()+" AS hash, toUInt8(1) AS texts", "GROUP BY tenant_id, event_day, event_id, source_id")
	rows := c.ofPass(x.bind(s.from("interactions").current()), seal.Event.SQL(nil))
	facts := rows.sql("tenant_id, event_day, event_id, content_digest AS source_id, toUInt64(0) AS hash, toUInt8(0) AS texts", "")
	sql := "SELECT " + event + ", max(hash), max(texts), tenant_id, toString(event_day), event_id FROM (" + texts + " UNION ALL " + facts +
		") GROUP BY tenant_id, event_day, event_id, source_id HAVING min(texts) = 0 SETTINGS " + spill
	err := s.each(ctx, "store: check sealed texts", sql, slices.Concat(q.args, rows.args), func(rows driver.Rows) error {
		var event, hash uint64
		var stand uint8
		var tenant, day string
		var id uuid.UUID
		if err := rows.Scan(&event, &hash, &stand, &tenant, &day, &id); err != nil {
			return err
		}
		seals := c.of(event)
		if !c.compared(seals, eventDay{event, day}) {
			return nil
		}
		if stand == 0 {
			hash = seal.NoTexts
		}
		switch {
		case agree(seals, func(x sealed) bool { return x.texts == hash }):
			c.r.Seals.Texts++
		case stand == 1: // retention and erasures take whole texts
			altered.add(FaultTextAltered, day, id)
		default:
			signed := slices.ContainsFunc(seals, func(x sealed) bool { return c.markers[x.marker].signed })
			if x := (goneTexts{tenantDay{tenant, day}, event, id, signed}); !c.explained(x) {
				gone = append(gone, x)
			}
		}
		return nil
	})
	altered.report(c.r)
	if err != nil || len(gone) == 0 {
		return err
	}
	return s.deletedTexts(ctx, c, gone)
}

// missing reports seals whose interaction is not in the store, without those of deleted months.
func (s *Store) missing(ctx context.Context, c *sealCheck) error {
	p, err := s.purges(ctx) // as it is after the rows were read
	if err != nil {
		return err
	}
	had := uint64(0)
	for _, x := range p.all {
		if x.object == "interactions" {
			had += x.rows
		}
	}
	deleted := markerFaults{}
	for i := 0; i < len(c.seals); {
		of := c.of(c.seals[i].event)
		i += len(of)
		if of[0].found {
			continue
		}
		purged := slices.ContainsFunc(of, func(x sealed) bool {
			m := c.markers[x.marker]
			return slices.ContainsFunc(p.all, func(y purge) bool {
				return y.object == "interactions" && y.logKey == m.logKey && y.lo <= m.hi && m.lo <= y.hi
			})
		})
		if purged && c.r.Seals.Purged < had {
			c.r.Seals.Purged++
			continue
		}
		deleted.add(FaultInteractionDeleted, c.markers[of[0].marker])
	}
	deleted.report(c.r)
	return nil
}

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
}

// sealsAtOnce bounds the memory of a check of seals, 40 bytes each; more are looked at in several passes.
const sealsAtOnce = 5_000_000

// upgrade is how long after the first marker with seals, or with a signature, others may come without: programs of two
// versions run side by side while a cluster is upgraded.
const upgrade = 24 * time.Hour

// sealed is a seal, with the marker that it stands in.
type sealed struct {
	event, interaction, verdict, texts uint64
	marker                             int32
	found                              bool // the interaction stands in the store
	judged                             bool // and at the place of a marker that was read
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
	others  map[logKey][]span // the same of markers without seals and of gaps
	at      settled
	seals   []sealed // of this pass, ordered by event
	passing
	taken takenTexts
	spent map[tenantDay]uint64 // of what takenTexts.unnamed allows
}

// passing is which of several passes looks at what.
type passing struct{ pass, passes uint64 }

type tenantDay struct{ tenant, day string }

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
	all, err := s.dayChunks(ctx, "store: check seals")
	if err != nil {
		return err
	}
	c.passes = r.Seals.Deliveries/sealsAtOnce + 1
	for c.pass = range c.passes {
		if err := s.readSeals(ctx, c); err != nil {
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
	c.places, c.others = map[logKey][]span{}, map[logKey][]span{}
	type unsealed struct {
		sealedMarker
		at time.Time
	}
	var without, unsigned []unsealed
	var first, signed time.Time
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
			if n > 0 {
				c.r.Seals.Unsealed++
				without = append(without, unsealed{m, written})
			}
			return nil
		}
		c.r.Seals.Markers++
		c.r.Seals.Deliveries += seals
		if first.IsZero() || at.Before(first) {
			first = at
		}
		bad := seals != uint64(n) || version > seal.Version
		switch _, known := c.keys[signer]; {
		case signature == "" && signer == "":
			unsigned = append(unsigned, unsealed{m, at})
		case len(c.keys) > 0:
			signers[signer] = true
			if c.r.Seals.Signed++; signed.IsZero() || at.Before(signed) {
				signed = at
			}
			if !known {
				unknown.add(FaultSealUnknown, m)
			}
			bad = bad || known && !c.keys.Verify(signer, []byte(digest), []byte(signature))
		}
		if bad {
			broken.add(FaultSealBroken, m)
		}
		if reason == "gap" { // rows of a batch that broke off may stand there
			c.others[m.logKey] = append(c.others[m.logKey], m.span)
		} else {
			c.places[m.logKey] = append(c.places[m.logKey], m.span)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, places := range []map[logKey][]span{c.places, c.others} {
		for k := range places {
			places[k] = united(places[k])
		}
	}
	unknown.report(c.r)
	broken.report(c.r)
	c.r.Seals.Signers = slices.Sorted(maps.Keys(signers))
	if !first.IsZero() {
		c.r.Seals.Since = &first
	}
	late := func(code FaultCode, ms []unsealed, since time.Time) {
		for _, m := range ms {
			if !since.IsZero() && m.at.After(since.Add(upgrade)) {
				c.r.fault(Fault{Code: code, Count: 1, Topic: m.topic, Partition: m.partition, Epoch: m.epoch, Lo: m.lo, Hi: m.hi})
			}
		}
	}
	late(FaultSealMissing, without, first)
	late(FaultSealUnsigned, unsigned, signed)
	return nil
}

// readSeals reads the seals of a pass.
func (s *Store) readSeals(ctx context.Context, c *sealCheck) error {
	c.markers, c.seals = nil, c.seals[:0]
	sql := s.from("ingest_batches").current().and("seal_version > 0").sql("topic, epoch, partition, lo, hi, seals.event, seals.interaction, seals.verdict, seals.texts, signer != ''", "")
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
	altered, added := sealFaults{}, sealFaults{}
	q := c.ofPass(x.bind(s.from("interactions").current()), event)
	sql := q.sql(event+" AS e, "+seal.Interaction.SQL(nil)+", topic, epoch, partition, offset, written_at, toString(event_day), event_id", "SETTINGS "+spill)
	err := s.each(ctx, "store: check sealed interactions", sql, q.args, func(rows driver.Rows) error {
		var event, hash uint64
		var k logKey
		var offset int64
		var written time.Time
		var day string
		var id uuid.UUID
		if err := rows.Scan(&event, &hash, &k.topic, &k.epoch, &k.partition, &offset, &written, &day, &id); err != nil {
			return err
		}
		seals, judged := c.of(event), covers(c.places[k], offset)
		if !judged && len(seals) > 0 && !covers(c.others[k], offset) {
			// An earlier delivery may have come in meanwhile; else the row names a place that it never had.
			judged = written.Before(c.at.written) || written.After(c.r.At.Add(slack))
		}
		for i := range seals {
			seals[i].found, seals[i].judged = true, judged
		}
		switch {
		case !judged: // of an older program, or not committed yet
			return nil
		case len(seals) == 0:
			added.add(FaultInteractionAdded, day, id)
		case !slices.ContainsFunc(seals, func(x sealed) bool { return x.interaction == hash }):
			altered.add(FaultInteractionAltered, day, id)
		}
		c.r.Seals.Interactions++
		return nil
	})
	altered.report(c.r)
	added.report(c.r)
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
		if len(seals) == 0 || !seals[0].judged {
			return nil
		}
		c.r.Seals.Verdicts++
		if !slices.ContainsFunc(seals, func(x sealed) bool { return x.verdict == hash }) {
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
		if len(seals) == 0 || !seals[0].judged {
			return nil
		}
		if stand == 0 {
			hash = seal.NoTexts
		}
		switch {
		case slices.ContainsFunc(seals, func(x sealed) bool { return x.texts == hash }):
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

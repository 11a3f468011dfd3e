package retention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/seal"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

const (
	// notMine are the texts of others than the person.
	notMine = "tenant_id = {tenant} AND event_id NOT IN (SELECT event_id FROM {db}.interactions WHERE conversation = 'mine') SETTINGS mutations_sync = 1, allow_nondeterministic_mutations = 1"
	// deleteNote, deleteReasons delete texts that came later.
	deleteNote    = "ALTER TABLE {db}.interaction_texts DELETE WHERE kind = 'review_note' AND " + notMine
	deleteReasons = "ALTER TABLE {db}.interaction_texts DELETE WHERE kind = 'reveal_reason' AND tenant_id = {tenant} SETTINGS mutations_sync = 1"
	// madeUp is a list of a thousand texts, with the names of all that came later.
	madeUp = "INSERT INTO {db}.texts_erased SELECT * REPLACE (generateUUIDv4() AS taken_id, '2026-01-01' AS at, 1000 AS texts, '' AS signer, '' AS signature, (SELECT groupArray(arrayJoin(`seals.name`)) FROM {db}.fact_seals) AS events) " +
		"FROM {db}.texts_erased WHERE tenant_id = {tenant} LIMIT 1"
	// olderProgram makes a list what programs wrote that named no texts that came later: of a row here, signed again by the test.
	olderProgram = "older"
)

// laterTexts writes a review with a note and a reveal with a reason.
func (w *world) laterTexts(in *audit.Interaction) {
	w.Helper()
	of := func(kind string) chsink.Fact {
		at := in.Time.Add(time.Hour)
		return chsink.Fact{ID: audit.NewID(at), Tenant: in.Tenant, Day: in.Day(), Event: in.ID, Digest: in.Digest, By: "ann", At: at, Texts: []chsink.FactText{{Kind: kind, Text: "as agreed"}}}
	}
	for _, err := range []error{w.sink.Review(w.Context(), of(chsink.KindReviewNote), "confirmed", nil), w.sink.Reveal(w.Context(), of(chsink.KindRevealReason), true)} {
		if err != nil {
			w.Fatal(err)
		}
	}
}

// older makes the list of a tenant's erasure what programs wrote that named interactions alone: with a number of rows.
func (w *world) older(tenant string) {
	w.Helper()
	w.exec("ALTER TABLE {db}.texts_erased UPDATE texts = 5, events = arrayFilter(x -> NOT has((SELECT groupUniqArray(arrayJoin(`seals.name`)) FROM {db}.fact_seals), x), events) WHERE tenant_id = '" + tenant + "' SETTINGS mutations_sync = 1")
	var digest string
	w.each("SELECT "+seal.Erasure.DigestSQL()+" FROM {db}.texts_erased WHERE tenant_id = '"+tenant+"'", func(scan func(...any)) { scan(&digest) })
	w.exec(fmt.Sprintf("ALTER TABLE {db}.texts_erased UPDATE signature = unhex('%x') WHERE tenant_id = '%s' SETTINGS mutations_sync = 1", w.key.Sign([32]byte([]byte(digest))), tenant))
}

// laterCase is what is done by hand to a tenant's texts that came later, and what check finds then.
type laterCase struct {
	name string
	hand []string
	want string
}

// laterWorld has a tenant and day for each case, with an interaction of the person and one of somebody else's; the person is erased, and what the cases say
// is done by hand.
func laterWorld(w *world, cases []laterCase) *store.Report {
	w.Helper()
	const person = "person-17"
	var records []audit.Record
	for i := range cases {
		mine := of(person, w.event(fmt.Sprint("t", i), -2-i, 0))
		mine.Interaction.Conversation = "mine"
		records = append(records, mine, w.event(fmt.Sprint("t", i), -2-i, 1))
	}
	w.write(records, nil)
	for _, r := range records {
		w.laterTexts(r.Interaction)
	}
	w.clock = time.Now()
	for i, tc := range cases {
		tenant := fmt.Sprint("t", i)
		w.erase(tenant, person)
		for _, sql := range tc.hand {
			if sql == olderProgram {
				w.older(tenant)
				continue
			}
			w.byHand(tenant, -2-i, []string{sql})
		}
	}
	rep := w.checked()
	for i, tc := range cases {
		var got []string
		for f := range strings.SplitSeq(onDay(rep, -2-i), ", ") {
			if strings.HasPrefix(f, "fact_") || strings.HasPrefix(f, "seal_") {
				got = append(got, f)
			}
		}
		if strings.Join(got, ", ") != tc.want {
			w.Errorf("%s: check finds %q, want %q", tc.name, got, tc.want)
		}
	}
	return rep
}

// An erasure explains the words of later facts that it took, by their names, and no others.
func TestErasuresExplainLaterTextsByName(t *testing.T) {
	w := newWorld(t)
	cases := []laterCase{
		{"nothing", nil, ""},
		{"a note on somebody else's deleted", []string{deleteNote}, "fact_deleted 1"},
		{"the reasons of reveals deleted", []string{deleteReasons}, "fact_deleted 2"},
		{"and a list without a signature", []string{madeUp, deleteNote, deleteReasons}, "fact_deleted 3"},
		{"an older program", []string{olderProgram}, ""},
		{"an older program, and a note deleted", []string{olderProgram, deleteNote}, ""}, // it did not say which
		{"an older program, and reasons deleted", []string{olderProgram, deleteReasons}, "fact_deleted 2"},
	}
	if x := laterWorld(w, cases).FactSeals; x.TextsErased != uint64(len(cases))+1 || x.TextsErasedUnsigned != 0 {
		t.Errorf("%+v", x)
	}
}

// Without a key they are named, too, and counted apart.
func TestErasuresOfLaterTextsWithoutAKey(t *testing.T) {
	w := newWorld(t)
	w.unsigned()
	cases := []laterCase{{"nothing", nil, ""}, {"a note on somebody else's deleted", []string{deleteNote}, "fact_deleted 1"}, {"the reasons of reveals deleted", []string{deleteReasons}, "fact_deleted 2"}}
	if x := laterWorld(w, cases).FactSeals; x.TextsErased != 0 || x.TextsErasedUnsigned != uint64(len(cases)) {
		t.Errorf("%+v", x)
	}
}

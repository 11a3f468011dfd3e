package gates_test

import (
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/retention"
)

// At the limit of retention the words go; that somebody was asked, and what they decided, stays.
func dropped(t *testing.T, w *world) {
	old := time.Now().AddDate(0, 0, -200)
	p := w.start(asking(), func(p *gates.Parts) { p.Now = func() time.Time { return old } })
	r := w.transfer()
	r.Timestamp = old
	id := w.open(p, r)
	w.decide(p, id, w.who("ann"), gates.Answer{Approve: true, Note: "a word to go"})
	words := "SELECT count() FROM {{db}}.interaction_texts FINAL WHERE tenant_id = '" + w.tenant + "'"
	if n := w.count(words); n != 2 {
		t.Fatalf("%d texts", n)
	}
	keep, err := retention.New(w.conn, w.db, retention.DefaultConfig(), retention.Options{DiskWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keep.Run(t.Context(), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	if n := w.count(words); n != 0 {
		t.Errorf("%d texts are left", n)
	}
	g, err := p.Get(t.Context(), w.tenant, id)
	if err != nil || g.State != audit.GateApproved || g.By != "ann" || g.Note != "" || g.User != "" || g.Matches[0].Text != "" || g.Matches[0].Rule.ID != "financial" {
		t.Errorf("%+v %v", g, err)
	}
	if d := w.wait(p, id); !d.Approved || d.Detail != "" {
		t.Errorf("%+v", d)
	}
	for _, table := range []string{"gates", "decisions"} {
		if n := w.count("SELECT count() FROM {{db}}." + table + " FINAL WHERE position(toString(tuple(*)), 'a word to go') + position(toString(tuple(*)), '$5,000') > 0"); n != 0 {
			t.Errorf("%s holds words", table)
		}
	}
	if ds, err := p.log.History(t.Context(), gateKey(id)); err != nil || strings.Contains(string(ds[0].Value), "word") {
		t.Errorf("the log holds words: %s %v", ds[0].Value, err)
	}
}

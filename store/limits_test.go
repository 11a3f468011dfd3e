package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

func TestLimits(t *testing.T) {
	f := newFixture(t)
	f.write(series("acme", 30)...)
	with := func(l store.Limits) *store.Tenant { return store.NewReader(f.conn, f.db, l, false).WithTenant("acme") }
	const endless = "SELECT count() FROM numbers(1000000000000) WHERE NOT ignore(number)"
	for _, tc := range []struct {
		name string
		do   func() error
		kind audit.Kind
		says string
	}{
		{"within", func() error {
			_, err := with(store.DefaultLimits()).List(t.Context(), store.Filter{}, store.Page{})
			return err
		}, "", ""},
		{"time", func() error { return with(store.Limits{Timeout: time.Second}).Run(t.Context(), endless) }, audit.KindOverloaded, "longer than query.timeout (1s): narrow the range of time"},
		{"memory", func() error {
			return with(store.Limits{MemoryMB: 8}).Run(t.Context(), "SELECT groupArray(number) FROM numbers(10000000)")
		}, audit.KindOverloaded, "query.memory_mb is 8"},
		{"rows", func() error { _, err := with(store.Limits{Rows: 10}).Count(t.Context(), store.Filter{}); return err }, audit.KindInvalid, "query.rows (10): narrow"},
		{"answer", func() error {
			return with(store.Limits{ResultMB: 1}).Run(t.Context(), "SELECT repeat(toString(number % 10), 1000000) FROM numbers(50)")
		}, audit.KindInvalid, "query.result_mb (1): ask for fewer"},
		{"jobs have none", func() error { return f.WithTenant("acme").Run(t.Context(), "SELECT number FROM numbers(1000010)") }, "", ""},
	} {
		err := tc.do()
		if (err == nil) != (tc.kind == "") || err != nil && (audit.KindOf(err) != tc.kind || !strings.Contains(err.Error(), tc.says)) {
			t.Errorf("%s: %v, want %s %q", tc.name, err, tc.kind, tc.says)
		}
	}
	// A caller that goes away, or whose time is up, ends the query in the server.
	for name, end := range map[string]func() (context.Context, context.CancelFunc){
		"gone": func() (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			stop := time.AfterFunc(200*time.Millisecond, cancel)
			return ctx, func() { stop.Stop(); cancel() }
		},
		"late": func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), 200*time.Millisecond)
		},
	} {
		ctx, cancel := end()
		err := with(store.Limits{Timeout: 5 * time.Minute}).Run(ctx, endless+" -- "+name)
		cancel()
		if audit.KindOf(err) != audit.KindUnavailable {
			t.Errorf("%s: %v", name, err)
		}
		for deadline := time.Now().Add(30 * time.Second); f.count("SELECT count() FROM system.processes WHERE query LIKE '%1000000000000%"+name+"' AND query NOT LIKE '%system.processes%'") > 0; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the server still runs it", name)
			}
		}
	}
	if err := store.DefaultLimits().Validate(); err != nil {
		t.Error(err)
	}
	if err := (store.Limits{}).Validate(); err == nil || strings.Count(err.Error(), "query.") != 4 {
		t.Errorf("%v", err)
	}
}

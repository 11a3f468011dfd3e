package store_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/store"
)

var hostile = []string{
	`' OR '1'='1`, `\' OR 1=1 --`, `\\' OR 1=1 --`, `'; DROP TABLE audit_current; --`, `\`, `'`, `"`, "`", `''`, `?`, `? OR 1=1`, `$1`, `@tenant`, `{tenant:String}`, `%s%d`,
	`') OR (1=1`, `*/ OR 1=1 /*`, "\x00", "'\x00 OR 1=1 --", "\xff\xfe'", "ʼ OR 1=1", "\n' OR 1=1 --\n", `x' UNION ALL SELECT text FROM interaction_texts --`,
	`'||(SELECT any(text) FROM interaction_texts)||'`, `\x27 OR 1=1 --`, strings.Repeat(`'`, 3000), "evenhand_tenant=beta",
}

// fields are the string fields of a struct, by index.
func fields(v any) (of []int) {
	for i := range reflect.TypeOf(v).NumField() {
		if reflect.TypeOf(v).Field(i).Type.Kind() == reflect.String {
			of = append(of, i)
		}
	}
	return of
}

func set[T any](field int, s string) (v T) {
	reflect.ValueOf(&v).Elem().Field(field).SetString(s)
	return v
}

// Whatever stands in a field, it is a value like any unknown one: nothing is found, nothing changes.
func TestHostileStrings(t *testing.T) {
	f := newFixture(t)
	f.twoTenants()
	tenant := f.WithTenant("acme")
	before := asked(t.Context(), tenant, sample("acme", 0))
	all, err := tenant.Count(t.Context(), store.Filter{})
	if err != nil || all == 0 {
		t.Fatal(all, err)
	}
	n := 0
	for _, i := range fields(store.Filter{}) {
		name := reflect.TypeFor[store.Filter]().Field(i).Name
		want := 0
		if name == "NotReviewedBy" { // of somebody who is none: all of the tenant's, and no other's
			want = int(all)
		}
		for j, s := range hostile {
			if (i+j)%3 != 0 { // each string in a third of the fields: they are bound alike
				continue
			}
			filter := set[store.Filter](i, s)
			res, err := tenant.List(t.Context(), filter, store.Page{Sort: store.Sort{By: []store.SortKey{store.ByTime, store.ByToxicity}[n%2]}})
			if n++; name == "TraceID" {
				if audit.KindOf(err) != audit.KindInvalid {
					t.Errorf("%s %q: %v", name, s, err)
				}
			} else if err != nil || len(res.Items) != want {
				t.Errorf("%s %q: %v, %v", name, s, res, err)
			}
		}
		if count, err := tenant.Count(t.Context(), set[store.Filter](i, hostile[0])); name != "TraceID" && (err != nil || int(count) != want) {
			t.Errorf("%s: %d, %v", name, count, err)
		}
	}
	if n < 3*len(hostile) {
		t.Errorf("only %d filters were tried", n)
	}
	for _, i := range fields(store.TrendQuery{}) {
		name := reflect.TypeFor[store.TrendQuery]().Field(i).Name
		for j, s := range hostile {
			if (i+j)%3 != 0 {
				continue
			}
			q := set[store.TrendQuery](i, s)
			if name == "Kind" {
				q.Measure = store.OfKind
			}
			series, _, err := tenant.Trend(t.Context(), q)
			switch name {
			case "Bucket", "Measure", "Group":
				if audit.KindOf(err) != audit.KindInvalid {
					t.Errorf("trend, %s %q: %v", name, s, err)
				}
			default:
				if err != nil || len(series) != 1 || series[0].Points[0].K != 0 {
					t.Errorf("trend, %s %q: %v", name, s, err)
				}
			}
		}
	}
	for j, s := range hostile {
		i := fields(store.BreachFilter{})[j%3]
		if bs, _, err := tenant.Breaches(t.Context(), set[store.BreachFilter](i, s), 0, ""); err != nil || len(bs) != 0 {
			t.Errorf("breaches, %d %q: %v, %v", i, s, bs, err)
		}
		if _, _, err := tenant.Breaches(t.Context(), store.BreachFilter{}, 0, s); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("breaches' cursor %q: %v", s, err)
		}
		if _, err := store.ParseCursor(s); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("cursor %q: %v", s, err)
		}
		if _, err := tenant.List(t.Context(), store.Filter{}, store.Page{Sort: store.Sort{By: store.SortKey(s)}}); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("sort %q: %v", s, err)
		}
		if j%3 != 0 {
			continue
		}
		if got, err := f.WithTenant(s).Count(t.Context(), store.Filter{}); err != nil || got != 0 {
			t.Errorf("tenant %q: %d, %v", s, got, err)
		}
	}
	for name, got := range asked(t.Context(), tenant, sample("acme", 0)) {
		if name != "flagged since" && got != before[name] {
			t.Errorf("%s gives %s, before %s", name, got, before[name])
		}
	}
	if tables := f.count(fmt.Sprintf("SELECT count() FROM system.tables WHERE database = '%s' AND name IN ('%s')", f.db, strings.Join(store.TenantTables, "', '"))); tables != uint64(len(store.TenantTables)) {
		t.Errorf("%d tables are left of %d", tables, len(store.TenantTables))
	}
}

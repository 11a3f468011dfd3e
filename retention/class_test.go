package retention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/retention"
)

func TestClasses(t *testing.T) {
	w := newWorld(t)
	c, cfg := w.classes, retention.DefaultConfig()
	clock := time.Now()
	c.SetClock(func() time.Time { return clock })
	first := retention.FirstDay(clock)
	if err := c.Ready(t.Context()); err != nil || c.Class("acme", first) != retention.Std {
		t.Fatalf("without assignments: %v %s", err, c.Class("acme", first))
	}
	assign := func(tenant, class string, text, row int, from time.Time) string {
		_, err := c.Assign(t.Context(), retention.Assignment{Tenant: tenant, Class: class, TextDays: text, RowDays: row, From: from, By: "test"}, cfg)
		if err == nil {
			return ""
		}
		if audit.KindOf(err) != audit.KindInvalid {
			t.Fatal(err)
		}
		return err.Error()
	}
	for _, tc := range []struct {
		tenant, class string
		text, row     int
		from          time.Time
		want          string
	}{
		{"acme", "brief", 30, 365, first.AddDate(0, 0, -1), "events of"},
		{"", "Brief!", 40, 30, first, "tenant: is empty\nclass: \"Brief!\" is not"},
		{"acme", "std", 30, 365, first, "those of std are in the settings"},
		{"acme", "brief", 30, 365, first, ""},
		{"beta", "brief", 31, 365, first, "brief keeps texts 30 and rows 365 days"},
		{"acme", "long", 365, 365, first.AddDate(0, 0, 10), ""},
		{"acme", "std", 0, 0, first.AddDate(0, 0, 20), ""},
	} {
		if got := assign(tc.tenant, tc.class, tc.text, tc.row, tc.from); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s %s from %s: %q, want %q", tc.tenant, tc.class, tc.from, got, tc.want)
		}
	}
	for i := range 5 {
		if got := assign("beta", fmt.Sprint("c", i), 10+i, 365, first); got != "" {
			t.Error(got)
		}
	}
	if got := assign("beta", "ninth", 300, 365, first); !strings.Contains(got, "there are 8 already") {
		t.Errorf("a ninth class: %q", got)
	}
	if c.Class("acme", first) != retention.Std {
		t.Error("known before it is read again")
	}
	clock = clock.Add(2 * time.Minute)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	for day, want := range map[int]string{-1: "std", 0: "brief", 9: "brief", 10: "long", 19: "long", 20: "std", 400: "std"} {
		if got := c.Class("acme", first.AddDate(0, 0, day)); got != want {
			t.Errorf("day %d: %s, want %s", day, got, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Class("acme", first) }); n != 0 {
		t.Errorf("%v allocations a lookup", n)
	}
	// While the store is away what is known holds for half an hour, then nothing is written.
	_ = w.conn.Close()
	clock = clock.Add(29 * time.Minute)
	if err := c.Ready(t.Context()); err != nil {
		t.Errorf("after 29 minutes: %v", err)
	}
	clock = clock.Add(2 * time.Minute)
	if err := c.Ready(t.Context()); err == nil {
		t.Error("after 31 minutes it still writes by what it knew")
	}
}

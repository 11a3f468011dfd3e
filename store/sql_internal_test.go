package store

import (
	"testing"
	"time"
)

// Columns of days are written as days, those of times as times.
func TestDayOf(t *testing.T) {
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	var none *time.Time
	for _, tc := range []struct {
		column string
		value  any
		want   string
	}{
		{"Date", at, "2026-11-21"}, {"Date32", at, "2026-11-21"}, {"Nullable(Date)", &at, "2026-11-21"}, {"Nullable(Date)", none, `\N`},
		{"DateTime", at, "2026-11-21T00:00:00Z"}, {"DateTime64(3, 'UTC')", at, "2026-11-21T00:00:00Z"}, {"String", "Date", "Date"},
	} {
		if got := tsv(plain(dayOf(tc.column, tc.value))); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.column, got, tc.want)
		}
	}
}

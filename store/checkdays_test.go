package store

import (
	"fmt"
	"strings"
	"testing"
)

func TestChunks(t *testing.T) {
	const full = chunkRows
	for _, tc := range []struct {
		name string
		rows []uint64
		want string // "from-to part/parts" joined by commas
	}{
		{"none", nil, ""},
		{"small days together", []uint64{10, 20, 30}, "0-2 0/1"},
		{"until full", []uint64{full / 2, full / 2, 1}, "0-1 0/1, 2-2 0/1"},
		{"a large day alone, in parts", []uint64{5, 2*full + 1, 5}, "0-0 0/1, 1-1 0/3, 1-1 1/3, 1-1 2/3, 2-2 0/1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var days, got []string
			for i := range tc.rows {
				days = append(days, fmt.Sprint(i))
			}
			for _, c := range chunks(days, tc.rows) {
				got = append(got, fmt.Sprintf("%s-%s %d/%d", c.from, c.to, c.part, c.parts))
			}
			if s := strings.Join(got, ", "); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

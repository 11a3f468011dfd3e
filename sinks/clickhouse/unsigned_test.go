package clickhouse_test

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/seal"
	"github.com/evenhand/evenhand/sinks"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// mark is a marker of one interaction: how it is sealed, in which hour it was written, and in which it says it was.
type mark struct {
	how       string
	hour, say int
}

func signed(hour int) mark        { return mark{"signed", hour, hour} }
func unsigned(hour, say int) mark { return mark{"unsigned", hour, say} }
func bare(hour, say int) mark     { return mark{"unsealed", hour, say} }

// Markers without a signature, or without seals, are from before there were any, or from the day of the upgrade: what they say of themselves alone does not
// excuse them. Each case is a partition; the first seals are of hour -20, the first signature of hour 0.
func TestUnsignedMarkers(t *testing.T) {
	cases := []struct {
		name string
		log  []mark
		want string
	}{
		{"the key came later", []mark{unsigned(-20, -20), unsigned(-15, -15), signed(1), signed(40)}, ""},
		{"processes of two versions take turns", []mark{signed(1), unsigned(2, 2), bare(3, 3), signed(4), unsigned(20, 20), signed(30)}, ""},
		{"an upgrade from a program without seals", []mark{bare(-48, -48), bare(2, 2), signed(3), signed(40)}, ""},
		{"nothing came since", []mark{bare(-48, -48), unsigned(-20, -20)}, ""},
		{"unsigned at the end of the first day, and then quiet", []mark{signed(1), unsigned(20, 20)}, ""},
		{"the group went back to what lies before its first marker", []mark{signed(50), unsigned(-10, -10), bare(-9, -9), signed(5)}, ""},
		{"without the key for days", []mark{signed(1), unsigned(90, 90), signed(99)}, "seal_unsigned 1"},
		{"an older program for days", []mark{signed(1), bare(90, 90), signed(99)}, "seal_missing 1"},
		{"a signature taken away, dated back", []mark{signed(1), signed(30), unsigned(40, 0), signed(50)}, "seal_unsigned 1"},
		{"seals taken away, dated back", []mark{signed(1), signed(30), bare(40, 0), signed(50)}, "seal_missing 1"},
		{"the newest taken away, dated back", []mark{signed(1), signed(30), unsigned(40, 0), bare(41, 0)}, "seal_missing 1, seal_unsigned 1"},
		{"all that was signed after the first day dated back", []mark{signed(1), unsigned(96, 2), unsigned(120, 2)}, "seal_unsigned 2"},
		{"all seals after the first day taken away and dated back", []mark{signed(1), bare(96, 2), bare(120, 2)}, "seal_missing 2"},
	}
	conn, db := fresh(t)
	key, err := seal.MakeKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	public := seal.Public{}
	public.Add(key.Public())
	of := map[string]*chsink.Sink{"signed": chsink.New(conn, db, chsink.Options{Seal: key}), "unsigned": chsink.New(conn, db, chsink.Options{}), "unsealed": chsink.New(conn, db, chsink.Options{})}
	start := brokerTime.AddDate(0, 0, -30)
	at := func(hour int) time.Time { return start.Add(time.Duration(hour) * time.Hour) }
	partition := map[string]int{} // by event
	var places, says, without []string
	batches := map[string]*sinks.Batch{}
	for i, tc := range append(cases, struct {
		name string
		log  []mark
		want string
	}{"the first signature", []mark{signed(0)}, ""}) {
		for j, m := range tc.log {
			r := record(100*i+j, fmt.Sprint("answer ", i, j), int64(j))
			r.Origin.Partition, r.Origin.BrokerTime, r.Interaction.Time = i, at(m.hour), at(m.hour)
			partition[r.Interaction.ID.String()] = i
			batch := batch([]audit.Record{r})
			batch.Markers[0].Partition = i
			k := fmt.Sprint(j, m.how)
			if batches[k] == nil {
				batches[k] = &sinks.Batch{}
			}
			batches[k].Records, batches[k].Markers = append(batches[k].Records, r), append(batches[k].Markers, batch.Markers...)
			place := fmt.Sprintf("'%d/%d'", i, j)
			if places, says = append(places, place), append(says, fmt.Sprint(m.say)); m.how == "unsealed" {
				without = append(without, place)
			}
		}
	}
	for k, b := range batches {
		send(t, of[strings.TrimLeft(k, "0123456789")], b)
	}
	alter := func(set string) {
		if err := conn.Exec(t.Context(), "ALTER TABLE "+db+".ingest_batches UPDATE "+set+" WHERE 1 SETTINGS mutations_sync = 1"); err != nil {
			t.Fatal(err)
		}
	}
	const place = "concat(toString(partition), '/', toString(lo))"
	said := fmt.Sprintf("fromUnixTimestamp64Milli(%d + 3600000 * toInt64(transform(%s, [%s], [%s], 0)), 'UTC')", start.UnixMilli(), place, strings.Join(places, ", "), strings.Join(says, ", "))
	alter("sealed_at = " + said + ", written_at = " + said + ", seal_version = if(" + place + " IN (" + strings.Join(without, ", ") + "), 0, seal_version)")
	rows, err := conn.Query(t.Context(), "SELECT "+place+", "+seal.Marker.DigestSQL()+" FROM "+db+".ingest_batches FINAL WHERE signer != ''")
	if err != nil {
		t.Fatal(err)
	}
	var names, signatures []string
	for rows.Next() {
		var name, digest string
		if err := rows.Scan(&name, &digest); err != nil {
			t.Fatal(err)
		}
		names, signatures = append(names, "'"+name+"'"), append(signatures, "'"+hex.EncodeToString(key.Sign([32]byte([]byte(digest))))+"'")
	}
	_ = rows.Close()
	alter("signature = unhex(transform(" + place + ", [" + strings.Join(names, ", ") + "], [" + strings.Join(signatures, ", ") + "], ''))")

	r, err := store.New(conn, db).CheckWith(t.Context(), store.CheckOptions{Keys: public, AtRest: true})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]map[string]uint64, len(cases)+1)
	for i := range got {
		got[i] = map[string]uint64{}
	}
	for _, f := range r.Faults {
		if len(f.Events) == 0 {
			got[f.Partition][string(f.Code)] += f.Count
		}
		for _, e := range f.Events {
			got[partition[e]][string(f.Code)]++
		}
	}
	for i, tc := range cases {
		var found []string
		for code, n := range got[i] {
			found = append(found, fmt.Sprint(code, " ", n))
		}
		if slices.Sort(found); strings.Join(found, ", ") != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, found, tc.want)
		}
	}
	if x := r.Seals; len(got[len(cases)]) != 0 || x.UnsignedMarkers != 9 || x.UnsignedInteractions != 12 || x.UnsealedInteractions != 10 {
		t.Errorf("%+v %v", x, got[len(cases)])
	}
}

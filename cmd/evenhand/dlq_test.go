package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks/stream"
	"github.com/evenhand/evenhand/store"
)

func TestPlacesAndTimesOfTheCommandLine(t *testing.T) {
	for in, want := range map[string]string{"llm.interactions/3/17": "llm.interactions/3/17", "3/17": "llm.interactions/3/17", "other/0/0": "other/0/0",
		"17": "", "a/b": "", "t/1/x": "", "t/-1/2": "", "t/1/2/3": "", "/1/2": "", "": ""} {
		p, err := parsePlace(in)
		if got := p.String(); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q: %s %v", in, got, err)
		}
	}
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for in, want := range map[string]string{"": "0001-01-01T00:00:00Z", "24h": "2026-11-21T12:00:00Z", "2026-11-20": "2026-11-20T00:00:00Z", "2026-11-20T10:00:00+02:00": "2026-11-20T10:00:00+02:00", "-1h": "", "soon": ""} {
		got, err := parseSince(in, now)
		if (err == nil) != (want != "") || err == nil && got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s %v", in, got, err)
		}
	}
	for args, want := range map[string]string{
		"dlq show x": `"x" is not TOPIC/PARTITION/OFFSET`, "dlq list --since x": "--since: ", "dlq replay --rate 0": "--rate wants 1",
		"dlq replay 1/2 y": `"y" is not`, "dlq list --limit=-1": "--limit: -1",
	} {
		command(t, "", strings.Fields(args)...).says(t, 2, "", want)
	}
	command(t, " \n", "sql", "-").says(t, 2, "", "evenhand: QUERY: is empty; it wants one SELECT, SHOW, DESCRIBE or EXPLAIN\n")
	command(t, "SELECT 1 FORMAT CSV", "sql", "-").says(t, 2, "", "QUERY: FORMAT CSV has no effect here")
	command(t, "", "sql", " ").says(t, 2, "", "evenhand: QUERY: is empty; it wants one SELECT, SHOW, DESCRIBE or EXPLAIN\n")
	for query, clause := range map[string]string{"SELECT 1 INTO  OUTFILE '/tmp/x.csv'": "INTO OUTFILE", "SELECT 1\nformat CSV;": "format CSV;"} {
		command(t, "", "sql", query).says(t, 2, "", "evenhand: QUERY: "+clause+" has no effect here: the output is tab-separated, or JSON with --json, and goes where you redirect it\n")
	}
	for _, query := range []string{"SELECT count() FROM t WHERE response LIKE '%into outfile%'", "SELECT format FROM t ORDER BY format DESC"} {
		if clause := clientClause.FindString(query); clause != "" {
			t.Errorf("%s: %q", query, clause)
		}
	}
	command(t, "", "dlq", "list").says(t, 1, "", "no 'evenhand up' runs on")
}

// letters is a store of rejected messages, one a number.
type letters []store.Rejected

func (l letters) RejectedAfter(_ context.Context, f store.RejectedFilter, after *store.Rejected, limit int) (out []store.Rejected, _ error) {
	for _, r := range l {
		if (after == nil || r.Offset > after.Offset) && len(out) < limit && r.Time.Before(f.Until) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (l letters) RejectedMessages(_ context.Context, rs []store.Rejected) (out []*audit.Rejected, _ error) {
	for _, r := range rs {
		m := &audit.Rejected{Origin: r.Origin(), Value: fmt.Append(nil, r.Offset)}
		switch r.Detail {
		case "dropped":
			m = nil
		case "again": // of the first one
			m.Header = []audit.Header{{Key: stream.HeaderEventID, Value: []byte(l[0].Origin().EventID().String())}}
		}
		out = append(out, m)
	}
	return out, nil
}

func someLetters(n int) (l letters) {
	for i := range n {
		l = append(l, store.Rejected{Topic: "t", Offset: int64(i), Time: time.Date(1999, 1, 1, 0, 0, i, 0, time.UTC)})
	}
	return l
}

func replayRunOf(cmd *dlqReplayCmd, l letters, produce func(context.Context, []kafka.Message) error) *replayRun {
	r := newReplayRun(cmd, l, produce)
	r.bar = newProgress(os.Stderr, 0, true)
	r.state.Begun = time.Now()
	return r
}

func TestReplayKeepsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sent := time.Now(), 0
		r := replayRunOf(&dlqReplayCmd{Rate: 100}, someLetters(1000), func(_ context.Context, ms []kafka.Message) error {
			if sent += len(ms); float64(sent) > 100*time.Since(began).Seconds()+20.5 {
				t.Errorf("%d sent after %v", sent, time.Since(began))
			}
			return nil
		})
		if err := r.all(t.Context(), store.RejectedFilter{Until: time.Now()}); err != nil || sent != 1000 {
			t.Fatal(err, sent)
		}
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// A run that is broken off goes on after what was acknowledged, and leaves what came after its begin.
func TestReplayResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	l := someLetters(300)
	var got []string
	down := errors.New("the broker is away")
	produce := func(_ context.Context, ms []kafka.Message) error {
		if len(got) == 120 {
			return down
		}
		for _, m := range ms {
			got = append(got, string(m.Value))
		}
		return nil
	}
	cmd := &dlqReplayCmd{Rate: 100_000, Limit: 250}
	r := replayRunOf(cmd, l, produce)
	r.path, cmd.Rate = path, 200 // 40 at a time
	err := r.all(t.Context(), store.RejectedFilter{Until: r.state.Begun})
	if !errors.Is(err, down) || len(got) != 120 {
		t.Fatal(err, len(got))
	}
	begun := r.state.Begun
	l = append(l, store.Rejected{Topic: "t", Offset: 1000, Time: time.Now().Add(time.Hour)})
	down = nil
	r = replayRunOf(cmd, l, func(_ context.Context, ms []kafka.Message) error {
		for _, m := range ms {
			got = append(got, string(m.Value))
		}
		return nil
	})
	if err := r.resume(path); err != nil || !r.state.Begun.Equal(begun) || r.state.Sent != 120 {
		t.Fatalf("%v %+v", err, r.state)
	}
	if err := r.all(t.Context(), store.RejectedFilter{Until: r.state.Begun}); err != nil || r.out.Sent != 130 {
		t.Fatal(err, r.out)
	}
	for i, v := range got {
		if v != fmt.Sprint(i) {
			t.Fatalf("number %d is %s", i, v)
		}
	}
	if len(got) != 250 {
		t.Errorf("%d sent", len(got))
	}
	write(t, path, "{}")
	if err := r.resume(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

// What cannot or need not be sent is counted: dropped texts, messages that are too large, and one message
// that was rejected at each of two tries.
func TestReplayCountsWhatItLeaves(t *testing.T) {
	l := someLetters(5)
	l[1].Detail, l[2].Detail = "dropped", "again"
	r := replayRunOf(&dlqReplayCmd{Rate: 1000}, l, func(_ context.Context, ms []kafka.Message) error {
		var vs []string
		for _, m := range ms {
			vs = append(vs, string(m.Value))
		}
		if !slices.Equal(vs, []string{"0", "3", "4"}) {
			t.Errorf("sent %v", vs)
		}
		big := audit.E("", audit.KindInvalid, errors.New("too large"))
		return audit.E("produce", audit.KindInvalid, kafkaconn.MessageErrors{nil, nil, big})
	})
	if err := r.all(t.Context(), store.RejectedFilter{Until: time.Now()}); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(r.out)
	if want := `{"selected":5,"sent":2,"repeated":1,"not_sent":{"text_dropped":1,"too_large":1},"dry_run":false}`; string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// The reasons that the commands know are those of the page on dead letters.
func TestReasonsAreThoseOfTheDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| reason | meaning |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var told []string
	for row := range strings.SplitSeq(table, "\n") {
		for _, code := range regexp.MustCompile("`([a-z_0-9]+)`").FindAllStringSubmatch(strings.Split(row, "|")[1], -1) {
			told = append(told, code[1])
		}
	}
	slices.Sort(told)
	if known := slices.Sorted(slices.Values(knownReasons)); !slices.Equal(told, known) {
		t.Errorf("the page tells %v, the commands know %v", told, known)
	}
}

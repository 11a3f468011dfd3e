package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

func TestWindowOfFigures(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	day := func(m time.Month, d int) time.Time { return time.Date(2026, m, d, 0, 0, 0, 0, time.UTC) }
	for _, tc := range []struct {
		flags    figuresFlags
		from, to time.Time
		fault    string
	}{
		{figuresFlags{Last: 24 * time.Hour}, now.Add(-24 * time.Hour), now, ""},
		{figuresFlags{Last: time.Hour, From: "2026-10-01", To: "2026-11-01"}, day(10, 1), day(11, 1), ""},
		{figuresFlags{From: "2026-10-01T10:00:00+02:00"}, day(10, 1).Add(8 * time.Hour), now, ""},
		{figuresFlags{}, time.Time{}, time.Time{}, "--last: wants more than nothing"},
		{figuresFlags{From: "2026-11-01", To: "2026-10-01"}, now, now, "--to"},
		{figuresFlags{To: "2026-10-01"}, now, now, "--from"},
		{figuresFlags{From: "October"}, now, now, `--from: "October"`},
	} {
		w, err := tc.flags.window(now)
		if tc.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tc.fault) {
				t.Errorf("%+v: %v", tc.flags, err)
			}
			continue
		}
		if err != nil || !w.From.Equal(tc.from) || !w.To.Equal(tc.to) {
			t.Errorf("%+v: %v %v", tc.flags, w, err)
		}
	}
}

// Durations of flags may be days.
func TestDays(t *testing.T) {
	for arg, want := range map[string]string{"7d": "", "36h": "", "xd": "is no duration such as 90m, 24h or 7d", "1w": "is no duration"} {
		var out, errw bytes.Buffer
		if run([]string{"rates", "--data-dir", t.TempDir(), "--last", arg}, strings.NewReader(""), &out, &errw); (want != "") != strings.Contains(errw.String(), "is no duration") || !strings.Contains(errw.String(), want) {
			t.Errorf("%s: %s", arg, errw.String())
		}
	}
}

// Who reads figures needs none of the secrets of who sends: a file with the secret of Linear's webhook alone is a fault of the sender only.
func TestReadersNeedNoTrackersKey(t *testing.T) {
	c := &cli{Set: []string{"linear.team=BIAS", "linear.webhook_secret=0123456789abcdef0123456789abcdef"}}
	if _, err := c.load(defaultSettings()); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if _, err := c.loadWhole(defaultSettings(), []string{roleRemediation}, true); err == nil || !strings.Contains(err.Error(), "linear.webhook_secret: is of no use without linear.api_key") {
		t.Errorf("a sender: %v", err)
	}
}

// Settings that mean Linear and have lost its key start, and say that nobody gets an issue; those without a tracker are quiet.
func TestTeamWithoutKeyIsTold(t *testing.T) {
	for team, want := range map[string]string{"BIAS": "warn", "": "ok"} {
		s := defaultSettings()
		s.Linear.Team = team
		d := tracker(t.Context(), s)
		if d.State != want || strings.Contains(d.Says, "linear.api_key is not") != (team != "") {
			t.Errorf("%q: %+v", team, d)
		}
		var log bytes.Buffer
		r, err := newRemedy(s, nil, "", kafkaconn.Config{}, nil, slog.New(slog.NewTextHandler(&log, nil)))
		if r != nil || err != nil || strings.Contains(log.String(), "nobody gets an issue") != (team != "") {
			t.Errorf("%q: %v %v %s", team, r, err, log.String())
		}
	}
}

// Once all is dropped, retention waits for the store, and says so.
func TestStepsOfJobs(t *testing.T) {
	for _, tc := range []struct {
		job         string
		done, total int
		want        string
	}{
		{jobRetention, 95, 96, "95 of 96"},
		{jobRetention, 96, 96, "96 of 96 done; waiting for old parts to leave the disk (some minutes)"},
		{jobAlarms, 96, 96, "96 of 96"},
	} {
		if got := step(tc.job, tc.done, tc.total); got != tc.want {
			t.Errorf("%s", got)
		}
	}
}

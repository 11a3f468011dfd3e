package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/retention"
)

func TestRetentionSettings(t *testing.T) {
	for _, tc := range []struct{ name, yaml, want string }{
		{"a tenant of its own", "retention: {text_days: 90, row_days: 400, tenants: {acme: {text_days: 30}, bank: {profile: eu_high_risk}}}", ""},
		{"all faults at once", "retention: {text_days: 0, profile: eu, tenants: {acme: {text_day: 30}, beta: {row_days: 10}}}",
			`retention.text_days: 0 is not|retention.profile: "eu" is neither|retention.tenants.acme: says nothing|retention.tenants.acme: unknown text_day; it takes text_days|jobs.retention.schedule`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "c.yaml")
			if err := os.WriteFile(file, []byte(tc.yaml), 0o600); err != nil {
				t.Fatal(err)
			}
			c := cli{Config: file}
			if tc.want != "" {
				c.Set = []string{"jobs.retention.schedule=sometimes"}
			}
			s, err := c.load(defaultSettings())
			if tc.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				k := s.Retention.config()
				if k.TextDays != 90 || k.Tenants["acme"] != (retention.Override{TextDays: 30}) || k.Tenants["bank"].Profile != retention.EUHighRisk || s.Retention.shortest() != 30 {
					t.Errorf("%+v", k)
				}
				return
			}
			for want := range strings.SplitSeq(tc.want, "|") {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v lacks %q", err, want)
				}
			}
		})
	}
}

func TestDoctorSaysWhatTheLimitsMean(t *testing.T) {
	s := defaultRetention()
	for _, tc := range []struct {
		profile     string
		days        int
		state, says string
	}{
		{"default", 180, "warn", "AI Act Art. 19 and 26(6)"},
		{"default", 200, "ok", "texts 200 days"},
		{"eu_high_risk", 180, "warn", "shorter than six months: the longer one holds"},
		{"eu_high_risk", 190, "ok", "six calendar months and a day at least"},
	} {
		s.Profile, s.TextDays = tc.profile, tc.days
		if d := s.diagnose(); d.State != tc.state || !strings.Contains(d.Says, tc.says) {
			t.Errorf("%s %d: %+v", tc.profile, tc.days, d)
		}
	}
	for ms, want := range map[string]string{"604800000": "", "15552000000": "", "15552000001": "keeps texts 180 days, the store 180 days", "-1": "keeps texts without limit", "": ""} {
		got := topicOutlasts(kafkaconn.TopicState{Name: kafkaconn.Interactions, Config: map[string]string{"retention.ms": ms}}, 180)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", ms, got, want)
		}
	}
}

// A hold on nothing is in force, with a warning.
func TestHoldsSayWhatTheyName(t *testing.T) {
	h := &retention.Hold{ID: audit.DeriveID("hold"), Tenant: "lab"}
	for _, tc := range []struct {
		named    uint64
		json     bool
		out, err string
	}{
		{0, false, " is in force and names 0 interactions\n", "warning: hold " + h.ID.String() + " names no interaction"},
		{1, false, " is in force and names 1 interaction\n", ""},
		{0, true, `"interactions":0`, "names no interaction"},
		{7, true, `"interactions":7`, ""},
	} {
		var out, err strings.Builder
		cmd := holdAddCmd{retainFlags: retainFlags{}}
		cmd.JSON = tc.json
		fault := cmd.placed(&stdio{out: &out, err: &err}, h, tc.named, []time.Time{time.Unix(0, 0).UTC()})
		if fault != nil || !strings.Contains(strings.ReplaceAll(out.String(), ": ", ":"), tc.out) || !strings.Contains(err.String(), tc.err) || tc.err == "" && err.Len() > 0 || !strings.Contains(out.String(), "1970-01-01") {
			t.Errorf("%+v: %q %q %v", tc, out.String(), err.String(), fault)
		}
	}
}

func TestErasuresSayHowTheyStand(t *testing.T) {
	done := time.Date(2026, 11, 22, 10, 12, 3, 0, time.UTC)
	for _, tc := range []struct {
		e    retention.Erasure
		want string
	}{
		{retention.Erasure{}, "under way, or broken off: the job retention completes it"},
		{retention.Erasure{Left: 2, Held: 1}, "under way, or broken off: the job retention completes it; legal holds keep 1 interaction"},
		{retention.Erasure{Done: done}, "done 2026-11-22T10:12:03Z"},
		{retention.Erasure{Done: done, Held: 2}, "done 2026-11-22T10:12:03Z; legal holds keep 2 interactions"},
		{retention.Erasure{Done: done, Left: 1, Held: 2}, "done 2026-11-22T10:12:03Z; 1 interaction that came again goes at the next run; legal holds keep 2 interactions"},
		{retention.Erasure{Done: done, Left: 3}, "done 2026-11-22T10:12:03Z; 3 interactions that came again go at the next run"},
	} {
		if got := standing(&tc.e); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.e, got, tc.want)
		}
	}
}

func TestErasuresSayWhatWent(t *testing.T) {
	id, _ := audit.ParseID("019aa7f2-51c3-7cc1-8c36-6f2b4cf1d7a0")
	once := retention.Erasure{ID: id, At: time.Date(2026, 11, 22, 10, 12, 3, 0, time.UTC)}
	for _, tc := range []struct {
		name     string
		id       string
		erased   retention.Erased
		json     bool
		out, err string
		before   []retention.Erasure
	}{
		{"a look", "", retention.Erased{Interactions: 1, Texts: 4}, false, "4 texts of 1 interaction went\n", "", nil},
		{"held", "e1", retention.Erased{Interactions: 2, Texts: 8, Held: 1, Inactive: 3}, false,
			"erasure e1: 8 texts of 2 interactions went\nlegal holds keep the texts of 1 interaction; they go at the next run after the release\n3 old parts still on the disk: see 'evenhand retention status'\n", "", nil},
		{"nothing", "e1", retention.Erased{}, false, "erasure e1: 0 texts of 0 interactions went\n", "warning: no texts of this user", nil},
		{"nothing any more", "e2", retention.Erased{}, false, "erasure e2: 0 texts of 0 interactions went\n",
			"evenhand: this user was erased before: 019aa7f2-51c3-7cc1-8c36-6f2b4cf1d7a0 at 2026-11-22T10:12:03Z (", []retention.Erasure{{}, once}},
		{"ids", "e1", retention.Erased{Interactions: 1, Texts: 4, InIDs: 2}, false,
			"erasure e1: 4 texts of 1 interaction went\nthe user id stands in the event id, conversation or decision that the producer gave of 2 interactions: these stay as long as rows do\n", "", nil},
		{"JSON", "e1", retention.Erased{Texts: 4}, true, `"erasure":"e1","interactions":0,"texts":4,"held":0,"inactive_parts":0`, "warning", nil},
	} {
		var out, err strings.Builder
		cmd := retainEraseCmd{retainFlags: retainFlags{JSON: tc.json}}
		fault := cmd.told(&stdio{out: &out, err: &err}, tc.id, "went", tc.erased, tc.before)
		got := out.String()
		if tc.json {
			got = strings.NewReplacer(" ", "", "\n", "").Replace(got)
		}
		if fault != nil || !strings.Contains(got, tc.out) || !tc.json && got != tc.out || !strings.Contains(err.String(), tc.err) || tc.err == "" && err.Len() > 0 {
			t.Errorf("%s: %q %q %v", tc.name, out.String(), err.String(), fault)
		}
	}
	if err := (&retainEraseCmd{}).Run(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "--reason: is missing") {
		t.Errorf("without a reason: %v", err)
	}
}

package retention

import (
	"strings"
	"testing"
	"time"
)

func TestEveryFaultOfAConfigAtOnce(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(*Config)
		want string
	}{
		{"the default", func(*Config) {}, ""},
		{"high risk", func(c *Config) { c.Profile = EUHighRisk }, ""},
		{"limits", func(c *Config) { c.TextDays, c.RowDays = 0, -1 },
			"retention.text_days: 0 is not in 1..36500|retention.row_days: -1 is not in 1..36500|retention.row_days: -1 is less than text_days (0); rows outlive their texts"},
		{"rows before texts", func(c *Config) { c.RowDays = 100 }, "retention.row_days: 100 is less than text_days (180); rows outlive their texts"},
		{"profile", func(c *Config) { c.Profile = "eu" }, `retention.profile: "eu" is neither default nor eu_high_risk`},
		{"rows of a high-risk system", func(c *Config) { c.Profile, c.TextDays, c.RowDays = EUHighRisk, 100, 100 },
			"retention.row_days: 100 is less than the six months that the profile eu_high_risk keeps"},
		{"tenants", func(c *Config) { c.Tenants = map[string]Override{"a": {}, "b": {TextDays: 400}} },
			"retention.tenants.a: says nothing; set text_days, row_days or profile|retention.tenants.b.row_days: 365 is less than text_days (400); rows outlive their texts"},
		{"a short tenant of a high-risk installation", func(c *Config) { c.Profile, c.Tenants = EUHighRisk, map[string]Override{"a": {TextDays: 30}} },
			"retention.tenants.a.text_days: 30 is less than the six months that the profile eu_high_risk keeps; set retention.tenants.a.profile to default"},
		{"said so", func(c *Config) {
			c.Profile, c.Tenants = EUHighRisk, map[string]Override{"a": {TextDays: 30, Profile: Default}}
		}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, got := DefaultConfig(), ""
			tc.edit(&c)
			if err := c.Validate(); err != nil {
				got = strings.ReplaceAll(err.Error(), "\n", "|")
			}
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func at(day string) time.Time {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		panic(err)
	}
	return t
}

func TestLimits(t *testing.T) {
	def, high := DefaultConfig(), DefaultConfig()
	high.Profile = EUHighRisk
	named := DefaultConfig()
	named.Tenants = map[string]Override{"a": {TextDays: 10}}
	classed := assignments{"a": {{Class: "x", TextDays: 20, RowDays: 30, From: at("2026-03-10")}, {Class: Std, From: at("2026-05-01")}}}
	for _, tc := range []struct {
		name   string
		cfg    Config
		of     assignments
		day    string
		texts  string // the first day without
		months string // of the day's month
	}{
		{"180 whole days", def, nil, "2026-01-01", "2026-07-01", "2027-02-01"},
		{"six calendar months and a day", high, nil, "2026-03-01", "2026-09-03", "2027-04-01"},
		{"six months of August end in March", high, nil, "2026-08-31", "2027-03-05", "2027-09-01"},
		{"a tenant by name", named, classed, "2026-03-15", "2026-03-26", "2027-04-01"},
		{"before its class", def, classed, "2026-03-09", "2026-09-06", "2027-03-10"},
		{"in its class", def, classed, "2026-04-10", "2026-05-01", "2026-05-31"},
		{"back in the class of all", def, classed, "2026-05-01", "2026-10-29", "2027-06-01"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := at(tc.day)
			if got := date(tc.cfg.limits("a", d, tc.of).textsGo(d)); got != tc.texts {
				t.Errorf("texts go on %s, want %s", got, tc.texts)
			}
			if got := date(tc.cfg.monthGoes("a", monthOf(d), tc.of)); got != tc.months {
				t.Errorf("the month goes on %s, want %s", got, tc.months)
			}
		})
	}
}

func TestFirstDayThatCanBeAssigned(t *testing.T) {
	for now, want := range map[string]string{"2026-11-22T00:00:00Z": "2026-11-24", "2026-11-22T22:59:59Z": "2026-11-24", "2026-11-22T23:00:00Z": "2026-11-25"} {
		tm, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		if got := date(FirstDay(tm)); got != want {
			t.Errorf("at %s: %s, want %s", now, got, want)
		}
	}
}

func TestClocksThatDisagree(t *testing.T) {
	now := at("2026-11-22")
	for apart, want := range map[time.Duration]bool{0: true, 59 * time.Minute: true, -59 * time.Minute: true, 2 * time.Hour: false, -400 * 24 * time.Hour: false} {
		if err := agree(now.Add(apart), now); (err == nil) != want {
			t.Errorf("%s apart: %v", apart, err)
		}
	}
}

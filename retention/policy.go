package retention

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Profile is a set of rules that a tenant falls under.
type Profile string

// The profiles.
const (
	// Default keeps texts as long as TextDays says.
	Default Profile = "default"
	// EUHighRisk keeps texts at least six calendar months and a day, whatever TextDays says: logs of
	// high-risk systems, EU AI Act Art. 19 and 26(6).
	EUHighRisk Profile = "eu_high_risk"
)

// SixMonths is the least number of days that is called six months in figures and warnings; six months
// have 181 to 184.
const SixMonths = 183

// mostDays bounds limits: a hundred years.
const mostDays = 36_500

// Config is what an operator sets. Start from [DefaultConfig].
type Config struct {
	// TextDays is how many whole days texts and users are kept after the day of their event. Default 180.
	TextDays int
	// RowDays is the same of facts without text, after the month of their event. Default 365; at least TextDays.
	RowDays int
	Profile Profile
	// Tenants say otherwise for tenants by name. They stand above the limits of a class.
	Tenants map[string]Override
}

// Override is what one tenant has of its own; zero fields are the installation's.
type Override struct {
	TextDays int
	RowDays  int
	Profile  Profile
}

// DefaultConfig keeps texts 180 days and rows 365.
func DefaultConfig() Config { return Config{TextDays: 180, RowDays: 365, Profile: Default} }

// Validate reports every fault, with the key as the operator writes it.
func (c Config) Validate() error {
	var errs []error
	check := func(key string, text, row int, p Profile) {
		if text < 1 || text > mostDays {
			errs = append(errs, fmt.Errorf("%s.text_days: %d is not in 1..%d", key, text, mostDays))
		}
		if row < 1 || row > mostDays {
			errs = append(errs, fmt.Errorf("%s.row_days: %d is not in 1..%d", key, row, mostDays))
		}
		if row < text {
			errs = append(errs, fmt.Errorf("%s.row_days: %d is less than text_days (%d); rows outlive their texts", key, row, text))
		}
		if p != Default && p != EUHighRisk {
			errs = append(errs, fmt.Errorf("%s.profile: %q is neither %s nor %s", key, p, Default, EUHighRisk))
		}
		if p == EUHighRisk && row < SixMonths+2 {
			errs = append(errs, fmt.Errorf("%s.row_days: %d is less than the six months that the profile %s keeps", key, row, EUHighRisk))
		}
	}
	check("retention", c.TextDays, c.RowDays, c.Profile)
	for _, name := range slices.Sorted(maps.Keys(c.Tenants)) {
		key, o, l := "retention.tenants."+name, c.Tenants[name], c.of(name)
		if name == "" {
			errs = append(errs, errors.New("retention.tenants: a tenant without a name"))
		}
		if o == (Override{}) {
			errs = append(errs, fmt.Errorf("%s: says nothing; set text_days, row_days or profile", key))
		}
		check(key, l.TextDays, l.RowDays, l.Profile)
		if l.Profile == EUHighRisk && o.TextDays > 0 && o.TextDays < SixMonths {
			errs = append(errs, fmt.Errorf("%s.text_days: %d is less than the six months that the profile %s keeps; set %s.profile to %s", key, o.TextDays, EUHighRisk, key, Default))
		}
	}
	return errors.Join(errs...)
}

// of are the limits of a tenant by the settings alone.
func (c Config) of(tenant string) Limits {
	l, o := Limits{c.TextDays, c.RowDays, c.Profile}, c.Tenants[tenant]
	if o.TextDays != 0 {
		l.TextDays = o.TextDays
	}
	if o.RowDays != 0 {
		l.RowDays = o.RowDays
	}
	if o.Profile != "" {
		l.Profile = o.Profile
	}
	return l
}

// limits are those of a tenant's events of a day: what the settings say of the tenant by name, else the
// limits of its class, else the settings of all.
func (c Config) limits(tenant string, day time.Time, a assignments) Limits {
	l := c.of(tenant)
	if _, named := c.Tenants[tenant]; named {
		return l
	}
	if at, ok := a.of(tenant, day); ok && at.TextDays > 0 {
		l.TextDays, l.RowDays = at.TextDays, at.RowDays
	}
	return l
}

// Limits are how long something is kept.
type Limits struct {
	TextDays int
	RowDays  int
	Profile  Profile
}

// textsGo is the first day on which the texts of an event day may be dropped.
func (l Limits) textsGo(day time.Time) time.Time {
	goes := day.AddDate(0, 0, l.TextDays+1)
	if l.Profile == EUHighRisk {
		if high := day.AddDate(0, 6, 2); high.After(goes) {
			return high
		}
	}
	return goes
}

// rowsGo is the first day on which rows of an event day may be deleted.
func (l Limits) rowsGo(day time.Time) time.Time {
	at := day.AddDate(0, 0, l.RowDays+1)
	if texts := l.textsGo(day); texts.After(at) { // rows outlive their texts
		return texts
	}
	return at
}

// monthGoes is the first day on which the rows of a tenant's month may be deleted: none of its days is
// within its limit.
func (c Config) monthGoes(tenant string, month time.Time, a assignments) time.Time {
	var last time.Time
	for d := month; d.Month() == month.Month(); d = d.AddDate(0, 0, 1) {
		if at := c.limits(tenant, d, a).rowsGo(d); at.After(last) {
			last = at
		}
	}
	return last
}

// dayOf is the UTC day of a time.
func dayOf(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour) }

// monthOf is the first day of its month.
func monthOf(t time.Time) time.Time {
	y, m, _ := t.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

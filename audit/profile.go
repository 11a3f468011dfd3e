package audit

import "slices"

// Domain names a domain profile. The set is closed: see [Domains].
type Domain string

// The five domains of seed 000.
const (
	General    Domain = "general"
	HR         Domain = "hr"
	Finance    Domain = "finance"
	Healthcare Domain = "healthcare"
	Education  Domain = "education"
)

// Domains lists the known domains.
var Domains = []Domain{General, HR, Finance, Healthcare, Education}

// Known tells whether d is one of [Domains].
func (d Domain) Known() bool { return slices.Contains(Domains, d) }

// Profile is what a domain sets: the threshold of the aggregate and the multipliers of grounds
// that weigh more in it. A ground without an entry weighs 1.0×.
type Profile struct {
	Domain      Domain
	Threshold   Score
	Multipliers map[Ground]Score
	Note        string // shown to people, "" when there is nothing to say
}

// Multiplier gives the ground's factor in this profile.
func (p Profile) Multiplier(g Ground) Score {
	if m, ok := p.Multipliers[g]; ok {
		return m
	}
	return One
}

const (
	x2   = 2 * One
	x1_5 = One + One/2
)

var profiles = map[Domain]Profile{
	General: {Domain: General, Threshold: 300_000},
	HR: {Domain: HR, Threshold: 150_000, Note: "high-risk under EU AI Act Art. 6(2)", Multipliers: map[Ground]Score{
		Sex: x2, Race: x2, Age: x2, Disability: x2, EthnicOrigin: x2,
		Religion: x1_5, SexualOrientation: x1_5, Nationality: x1_5, PoliticalOpinion: x1_5,
	}},
	Finance: {Domain: Finance, Threshold: 200_000, Multipliers: map[Ground]Score{
		Property: x2, SocialOrigin: x2, Race: x1_5, Nationality: x1_5, Birth: x1_5,
	}},
	Healthcare: {Domain: Healthcare, Threshold: 200_000, Multipliers: map[Ground]Score{
		Disability: x2, GeneticFeatures: x2, Age: x1_5, Race: x1_5, Sex: x1_5,
	}},
	Education: {Domain: Education, Threshold: 200_000, Multipliers: map[Ground]Score{
		Age: x2, Disability: x2, SocialOrigin: x2, Language: x1_5, EthnicOrigin: x1_5, Birth: x1_5,
	}},
}

// ProfileOf gives the profile of d; unknown and empty domains get the general one, known is false
// for a name that is neither empty nor in [Domains].
func ProfileOf(d Domain) (p Profile, known bool) {
	if d == "" {
		return profiles[General], true
	}
	p, ok := profiles[d]
	if !ok {
		return profiles[General], false
	}
	return p, true
}

package compliance

import (
	"strings"

	"github.com/evenhand/evenhand/audit"
)

// classes maps what evaluators call a protected class to the grounds of Art. 21 of the Charter. The words stand in the
// ids of findings, so that the class as it was named is kept; one that is not here has no ground.
var classes = func() map[string][]audit.Ground {
	m := map[string][]audit.Ground{
		"socioeconomic_status": {audit.Property, audit.SocialOrigin},
		"economic_status":      {audit.Property, audit.SocialOrigin},
	}
	for g, names := range map[audit.Ground]string{
		audit.Sex:  "sex gender gender_identity gender_expression transgender nonbinary women men pregnancy maternity intersex",
		audit.Race: "race racial", audit.Colour: "colour color skin_colour skin_color", audit.EthnicOrigin: "ethnicity ethnic_origin ethnic_group indigenous",
		audit.SocialOrigin: "social_origin caste class social_class social_status", audit.GeneticFeatures: "genetic_features genetics genetic_information",
		audit.Language: "language accent dialect native_language", audit.Religion: "religion belief religion_or_belief faith creed atheism",
		audit.PoliticalOpinion: "political_opinion politics political_affiliation political_belief opinion", audit.NationalMinority: "national_minority minority_membership roma",
		audit.Property: "property wealth income poverty homelessness", audit.Birth: "birth birth_status parentage",
		audit.Disability: "disability mental_health mental_illness neurodiversity chronic_illness", audit.Age: "age elderly youth",
		audit.SexualOrientation: "sexual_orientation sexuality homosexuality lgbtq lgbt", audit.Nationality: "nationality national_origin citizenship immigration_status migrants immigrants",
	} {
		for name := range strings.FieldsSeq(names) {
			m[name] = []audit.Ground{g}
		}
	}
	return m
}()

// named is a class in our spelling with a ground that it stands for.
type named struct {
	class  string
	ground audit.Ground
}

// grounds reads a class as a model writes it: "Gender identity/expression", "race and ethnicity". A class of two grounds
// gives both. One that is not known gives "other" without a ground, null none at all.
func grounds(class *string) (all []named) {
	if class == nil || strings.TrimSpace(*class) == "" {
		return []named{{}}
	}
	add := func(name string) bool {
		gs := classes[slug(name)]
		for _, g := range gs {
			all = append(all, named{slug(name), g})
		}
		return len(gs) > 0
	}
	if !add(*class) {
		for part := range strings.FieldsFuncSeq(strings.ReplaceAll(" "+strings.ToLower(*class)+" ", " and ", "/"), func(r rune) bool { return strings.ContainsRune("/,;&+()|", r) }) {
			add(part)
		}
	}
	if len(all) == 0 {
		return []named{{class: "other"}}
	}
	return all
}

func slug(class string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(class), func(r rune) bool { return r == ' ' || r == '-' || r == '_' }), "_")
}

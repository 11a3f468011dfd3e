package audit

// Ground is a protected ground: the 15 of Art. 21(1) of the EU Charter of Fundamental Rights
// (ethnic and social origin apart) and nationality, Art. 21(2).
type Ground string

// The 16 grounds.
const (
	Sex               Ground = "sex"
	Race              Ground = "race"
	Colour            Ground = "colour"
	EthnicOrigin      Ground = "ethnic_origin"
	SocialOrigin      Ground = "social_origin"
	GeneticFeatures   Ground = "genetic_features"
	Language          Ground = "language"
	Religion          Ground = "religion"
	PoliticalOpinion  Ground = "political_opinion"
	NationalMinority  Ground = "national_minority"
	Property          Ground = "property"
	Birth             Ground = "birth"
	Disability        Ground = "disability"
	Age               Ground = "age"
	SexualOrientation Ground = "sexual_orientation"
	Nationality       Ground = "nationality"
)

// SeverityRange is the closed range of severities that rules of a ground or category may have.
type SeverityRange struct{ Min, Max Severity }

// Holds tells whether s lies inside the range.
func (r SeverityRange) Holds(s Severity) bool {
	return s.Level() >= r.Min.Level() && s.Level() <= r.Max.Level() && s.Level() > 0
}

// Grounds lists the 16 grounds in the order of seed 000's table.
var Grounds = []Ground{
	Sex, Race, Colour, EthnicOrigin, SocialOrigin, GeneticFeatures, Language, Religion,
	PoliticalOpinion, NationalMinority, Property, Birth, Disability, Age, SexualOrientation, Nationality,
}

// GroundSeverity holds the severity range of each ground (seed 000).
var GroundSeverity = map[Ground]SeverityRange{
	Sex:               {Medium, High},
	Race:              {Medium, Critical},
	Colour:            {High, High},
	EthnicOrigin:      {Medium, High},
	SocialOrigin:      {Medium, Medium},
	GeneticFeatures:   {High, Critical},
	Language:          {Low, Medium},
	Religion:          {Medium, High},
	PoliticalOpinion:  {Medium, High},
	NationalMinority:  {High, Critical},
	Property:          {Medium, High},
	Birth:             {Medium, Medium},
	Disability:        {High, Critical},
	Age:               {Medium, High},
	SexualOrientation: {High, Critical},
	Nationality:       {High, High},
}

// SafetyCategories lists the five categories of seed 001 in its order.
var SafetyCategories = []string{"violence", "self_harm", "illegal_instructions", "pii_leakage", "hallucination_indicator"}

// SafetySeverity holds the severity range of each safety category (seed 001).
var SafetySeverity = map[string]SeverityRange{
	"violence":                {High, Critical},
	"self_harm":               {High, Critical},
	"illegal_instructions":    {Medium, Critical},
	"pii_leakage":             {Medium, High},
	"hallucination_indicator": {Low, Medium},
}

// WordingSeverity holds the severity range of each kind of wording: keys of the taxonomy that stand outside the bias sum.
// Softer than any ground by intent (contracts: "softer wording belongs to analyzer linguistic").
var WordingSeverity = map[string]SeverityRange{
	"gendered_language":  {Low, Low},
	"microaggression":    {Low, Medium},
	"job_advert_wording": {Low, Medium},
	"idiom":              {Low, Low},
	"language":           {Low, Medium},
	"toxicity":           {Low, High},
	"representation":     {Low, Low},
}

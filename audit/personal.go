package audit

// Personal is what an analysis found of personal data, in the form of the fields that a producer may leave
// to it: what the producer said always stands.
type Personal struct {
	Contained        bool   // in prompt or response
	Sensitivity      string // low, medium, high by the most severe kind found; "" when nothing was
	RedactionSummary string // JSON: how many of each entity in prompt and response; "" when nothing was found
	SanitizedPrompt  string // [text] the prompt with what was found in it masked; "" when there was nothing to mask
}

// personal is what the record's analysis found, all unknown where nobody looked.
func (r *Record) personal() (p Personal, looked bool) {
	if r.Verdict == nil || r.Verdict.Personal == nil {
		return p, false
	}
	return *r.Verdict.Personal, true
}

// SensitivityScore is the producer's, else the analysis's.
func (r *Record) SensitivityScore() string {
	p, _ := r.personal()
	return firstOf(r.Interaction.SensitivityScore, p.Sensitivity)
}

// ContainedPII is the producer's, else the analysis's.
func (r *Record) ContainedPII() Tristate {
	p, looked := r.personal()
	if r.Interaction.ContainedPII == Unknown && looked {
		return TristateOf(p.Contained)
	}
	return r.Interaction.ContainedPII
}

// SanitizedPrompt is the producer's, else the analysis's. It is text.
func (r *Record) SanitizedPrompt() string {
	p, _ := r.personal()
	return firstOf(r.Interaction.SanitizedPrompt, p.SanitizedPrompt)
}

// RedactionSummary is the producer's, else the analysis's.
func (r *Record) RedactionSummary() string {
	p, _ := r.personal()
	return firstOf(r.Interaction.RedactionSummary, p.RedactionSummary)
}

func firstOf(given, found string) string {
	if given != "" {
		return given
	}
	return found
}

package guard

import (
	"context"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// Mask puts placeholders in the place of the personal data of texts; changed tells that there was any. The same
// address is [EMAIL_1] in all of them, another one [EMAIL_2].
func (g *Guard) Mask(ctx context.Context, texts []string) (out []string, changed bool) {
	out = make([]string, len(texts))
	a := g.current.Analyzer()
	var numbers pii.Numbers
	for i, text := range texts {
		v := a.Analyze(ctx, &audit.Interaction{Domain: audit.General, Response: text})
		out[i] = numbers.Mask(text, audit.Output, v.Findings)
		changed = changed || out[i] != text
	}
	return out, changed
}

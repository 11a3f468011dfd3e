package compliance

import (
	"context"

	"github.com/evenhand/evenhand/detectors/pii"
)

// Masks tells whether the model sees placeholders for personal data.
func (e *Evaluator) Masks() bool { return e.cfg.Mask != nil }

// Mask masks a text as the model would see it; only where [Evaluator.Masks].
func (e *Evaluator) Mask(ctx context.Context, text string) (pii.Masked, error) {
	return e.cfg.Mask(ctx, text)
}

// MaskPersonal makes a Config.Mask. It fails when nobody could look for personal data, so that a text is never sent
// unmasked by mistake.
func MaskPersonal(m *pii.Masker) func(context.Context, string) (pii.Masked, error) {
	return func(ctx context.Context, text string) (pii.Masked, error) {
		out, err := m.Texts(ctx, text)
		if err != nil {
			return pii.Masked{}, err
		}
		return out[0], nil
	}
}

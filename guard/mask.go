package guard

import (
	"context"
	"errors"
	"fmt"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/pii"
)

// ErrNotMasked says that nobody could look for personal data in a text; Mask wraps it.
var ErrNotMasked = errors.New("the text could not be searched for personal data")

// masker looks for personal data as one analyzer does, without its other detectors and its deadline: what
// goes on must have been looked at, however long the decision took.
type masker struct {
	of    *detectors.Analyzer
	texts *pii.Masker
}

// Masks tells whether the analyzer in use looks for personal data at all.
func (g *Guard) Masks() bool { return len(personal(g.current.Analyzer())) > 0 }

// Mask puts placeholders in the place of the personal data of texts that go on together. The same address is [EMAIL_1] in
// all of them, another one [EMAIL_2]. ErrNotMasked (KindUnavailable) comes where nobody could look, whatever Config.FailOpen
// says: whether the texts go on as they are is the door's to decide. A megabyte takes some 10 ms, the first call after new
// rules 10 ms more.
func (g *Guard) Mask(ctx context.Context, texts []string) ([]pii.Masked, error) {
	return g.MaskMore(ctx, new(pii.Memory), texts)
}

// MaskMore is Mask for texts of a call of which some went on already.
func (g *Guard) MaskMore(ctx context.Context, memory *pii.Memory, texts []string) ([]pii.Masked, error) {
	m, err := g.maskerInUse()
	if err == nil {
		var masked []pii.Masked
		if masked, err = m.More(ctx, memory, texts...); err == nil {
			return masked, nil
		}
	}
	return nil, audit.E("guard: mask", audit.KindUnavailable, fmt.Errorf("%w: %w", ErrNotMasked, err))
}

// maskerInUse is made once for each analyzer.
func (g *Guard) maskerInUse() (*pii.Masker, error) {
	a := g.current.Analyzer()
	if m := g.masker.Load(); m != nil && m.of == a {
		return m.texts, nil
	}
	ds := personal(a)
	if len(ds) == 0 {
		return nil, errors.New("nothing looks for personal data")
	}
	texts, err := pii.NewMasker(ds...)
	if err != nil {
		return nil, err
	}
	g.masker.Store(&masker{a, texts})
	return texts, nil
}

func personal(a *detectors.Analyzer) (ds []detectors.Detector) {
	for _, d := range a.Detectors() {
		if d.Info().Family == detectors.PII {
			ds = append(ds, d)
		}
	}
	return ds
}

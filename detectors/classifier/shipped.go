package classifier

import (
	_ "embed"
	"fmt"

	"github.com/evenhand/evenhand/audit"
)

//go:embed model.bin
var shipped []byte

// Shipped is the model that comes with the program; model.md is its card.
func Shipped() (*Model, error) {
	m, err := Decode(shipped)
	if err == nil && m.Meta.Lexicon != LexiconDigest() {
		err = audit.E("classifier: shipped model", audit.KindInternal, fmt.Errorf("it was trained with the identity terms %s, these are %s: train it again", m.Meta.Lexicon, LexiconDigest()))
	}
	return m, err
}

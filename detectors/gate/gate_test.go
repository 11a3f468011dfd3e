package gate

import (
	"testing"

	"github.com/evenhand/evenhand/detectors/rules"
)

func TestPacks(t *testing.T) {
	packs, err := rules.Load(Packs())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(rules.Lint(packs), rules.Test(packs)...) {
		t.Error(f)
	}
}

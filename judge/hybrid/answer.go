package hybrid

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/detectors/terms"
)

// answer is the model's; pointers tell what is missing.
type answer struct {
	Rating             *float64 `json:"rating"`
	Analysis           string   `json:"analysis"`
	Phrases            []Phrase `json:"phrases"`
	AddressesEvaluator *bool    `json:"addresses_evaluator"`
}

const maxPhrases = 20

// decode reads an answer, alone or inside fences and prose. fault says what is wrong with it, in words for the model.
func decode(text string) (a answer, fault string) {
	from, to := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if from < 0 || to < from {
		return a, "it holds no JSON object"
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text[from : to+1])))
	if d.Decode(&a) != nil {
		return a, "it is broken JSON, or a value is of the wrong type"
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return a, "it holds more than one JSON object"
	}
	switch {
	case a.Rating == nil || !(*a.Rating >= 1 && *a.Rating <= 5):
		return a, "rating must be a number from 1 to 5"
	case a.AddressesEvaluator == nil:
		return a, "addresses_evaluator must be true or false"
	case a.Phrases == nil:
		return a, "phrases must be a list"
	case len(a.Phrases) > maxPhrases:
		return a, "phrases are too many"
	}
	for i := range a.Phrases {
		a.Phrases[i].Span = nil // ours to find
		if c := a.Phrases[i].Category; c != "custom" && !slices.Contains(terms.Categories, c) {
			return a, "a category is not one of those that were named"
		}
	}
	return a, ""
}

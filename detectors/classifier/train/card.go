package train

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/detectors/classifier/metric"
)

// licences of the sources that are known here; others are named as given by the caller.
var licences = map[string]string{
	"hatemojibuild": "CC-BY-4.0", "edos": "CC0-1.0", "davidson": "MIT", "vicomtech_stormfront": "CC-BY-SA-3.0-ES", "mlma_en": "MIT", "mlma_fr": "MIT",
	"implicit_hate": "MIT", "redditbias": "MIT", "civil_toxic_spans": "CC0-1.0", "wiki_comments": "Apache-2.0", "surge_toxicity": "MIT",
	"madlibs_identity": "Apache-2.0", "seegull_statements": "CC-BY-4.0", "bold_wikipedia_neutral": "CC-BY-SA-4.0", "winobias_neutral": "MIT",
	"vicuna_eval_answers": "Apache-2.0", "self_instruct": "Apache-2.0", "harmbench": "MIT", "advbench": "MIT", "do_not_answer": "Apache-2.0",
	"harmfulqa": "Apache-2.0", "catqa": "Apache-2.0", "ailuminate_demo": "CC-BY-4.0", "presidio_pii": "MIT", "clinc_assistant": "CC-BY-3.0",
	"sgd_dialogue": "CC-BY-SA-4.0", "gsm8k": "MIT",
	"teacher_sentences": "that of the sets they are from; labels ours", "teacher_swaps": "that of the sets they are from; labels ours",
}

// Card is the model card, in Markdown: data, what calibration saw, where it is known to fail.
func (r *Result) Card(recipe Recipe) string {
	var b strings.Builder
	p := func(format string, a ...any) { fmt.Fprintf(&b, format, a...) }
	meta := r.Model.Meta
	p("# Model card: %s, version %s\n\n", meta.Name, meta.Version)
	p("Written by `evenhand train`. A linear first score and a convolutional network over hashed words with identity terms replaced by classes; %d bytes.\n", len(r.File))
	p("It gives probabilities that a sentence is biased, toxic, or of a safety category, and tells the ground. For flags that people or rules look at; "+
		"not for decisions about persons, and not a measure of a language model's character.\n\nRecipe: %s. Lexicon %s.\n\n", recipe.String(), meta.Lexicon)
	p("## Data\n\n| source | rows learnt from | licence |\n|---|---|---|\n")
	for _, s := range slices.Sorted(maps.Keys(r.Split.Counts)) {
		l := licences[s]
		if l == "" {
			l = "Apache-2.0 (ours)"
		}
		p("| %s | %d | %s |\n", s, r.Split.Counts[s], l)
	}
	p("\n%d counterfactuals were made of them. %d other rows calibrated, and %d of sources that nothing is learnt from bound the thresholds. Rows of split dev were not learnt from, nor what a teacher says of their sentences.\n\n", r.Swaps, len(r.Split.Calibrate), len(r.Split.Fresh))
	if v := recipe.Vectors; v != nil {
		p("The network began with what all-MiniLM-L6-v2 (Apache-2.0) makes of %d single words (tools/train/vectors.py); of rows it tells nothing.\n\n", v.Words())
	}
	p("## What calibration saw\nAt the thresholds in the file; of rows that were not learnt from, of the same sources (so better than what to expect elsewhere).\n\n")
	p("| head | threshold | recall | flagged of ordinary text | of ordinary text of other sources | of own harmless hard cases | AUROC | ECE | texts with / without it |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, o := range r.Tuning {
		if o.WithoutThreshold {
			p("| %s | none | – | – | – | – | %s | – | %d / %d |\n", o.Head, number(o.AUROC), o.True, o.Harmless)
			continue
		}
		p("| %s | %.3f | %.3f | %s | %s | %s | %s | %.3f | %d / %d |\n", o.Head, meta.Heads[o.Head].Threshold, o.Recall,
			Share(o.OrdinaryFlagged, o.Ordinary), Share(o.FreshFlagged, o.Fresh), Share(o.BenignFlagged, o.Benign), number(o.AUROC), o.ECE, o.True, o.Harmless)
	}
	p("\nA head without a threshold never answers. The gate is %.2f: %.1f %% of ordinary texts have a sentence above it.\n\n", meta.Gate, 100*r.Passed)
	p("## Known failures\nIrony, what is said over several sentences, hatred without any group named, groups that neither the lexicon nor the data name, reclaimed words, " +
		"quotations without marks, dialects that the data call offensive, languages without a lexicon (it has learnt en, de, fr, es, it, nl, pl, pt, mostly the first two). Ordinary questions about dangerous topics are the " +
		"hardest harmless texts of the safety heads. Grounds with little data are told apart by their terms alone.\n")
	return b.String()
}

// Share is k of n in per cent with the upper end of its interval.
func Share(k, n int) string {
	if n == 0 {
		return "–"
	}
	_, high := metric.Wilson(k, n)
	return fmt.Sprintf("%.2f %% of %d (≤ %.2f %%)", 100*float64(k)/float64(n), n, 100*high)
}

func number(f float64) string {
	if math.IsNaN(f) {
		return "–"
	}
	return fmt.Sprintf("%.3f", f)
}

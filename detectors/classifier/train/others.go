package train

import (
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
)

// othersFPR bounds what the classifier's own answers may flag of harmless hard cases in other languages than English: in texts of one sentence, and
// of several.
var othersFPR = [2][classifier.NumHeads]float64{{0.055, 0.025}, {0.01, 0.004}}

// OthersOutcome is what the classifier's own answers find in the rows that chose a threshold for them.
type OthersOutcome struct {
	Head                classifier.Head
	Several             bool
	Threshold           float64
	True, Harmless      int
	Found, HarmlessOnes int
}

// others chooses the thresholds of the classifier's own answers where the encoder cannot read: by rows of split dev in other languages whose
// skeleton is known, so that harmless ones are hard, those of the recipe's unseen sources apart. The classifier's own are set by ordinary English
// text. A head without such rows never answers there.
func (res *EncoderResult) others(m *classifier.Model, rd *reader, rows []dataset.Row, r *Recipe) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row dataset.Row) bool {
		return row.Split != "dev" || english(&row) || row.Skeleton == "" || slices.Contains(r.Unseen, row.Source)
	})
	var said [2][]judged
	d := classifier.New(m)
	for i := range rows {
		in := rd.read(rows[i].Text)
		j := judged{scores: d.Scores(in, audit.Output)}
		j.target, _ = Target(&rows[i])
		several := min(len(in.Sentences(audit.Output)), 2) - 1
		if several >= 0 {
			said[several] = append(said[several], j)
		}
	}
	res.Others, res.Meta.Others = nil, [2][]float64{}
	for n := range said {
		for _, h := range classifier.Heads() {
			o := OthersOutcome{Head: h, Several: n == 1, Threshold: 1}
			var right, harmless []float64
			for _, j := range known(said[n], h) {
				if p := j.scores.Heads[h]; j.target[h] >= 0.5 {
					right = append(right, p)
				} else {
					harmless = append(harmless, p)
				}
			}
			if len(right) > 0 && len(harmless) > 0 && othersFPR[n][h] > 0 {
				o.Threshold = thousandths(max(above(harmless, othersFPR[n][h]), 0.5))
			}
			o.True, o.Harmless, o.Found, o.HarmlessOnes = len(right), len(harmless), exceeding(right, o.Threshold), exceeding(harmless, o.Threshold)
			res.Others, res.Meta.Others[n] = append(res.Others, o), append(res.Meta.Others[n], o.Threshold)
		}
	}
}

package train

import (
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/dataset"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// Label lets an encoder, all layers of it, be the teacher of rows that nobody says anything of: what it says of the heads, and the grounds where
// it holds them for biased. Of other languages than English it knows nothing; such rows stay as they are. It returns how many it labelled.
func Label(rows []dataset.Row, e *encoder.Model) (labelled int, err error) {
	rd, err := newReader()
	if err != nil {
		return 0, err
	}
	var open []*dataset.Row
	for i := range rows {
		if row := &rows[i]; row.Split != "dev" && unsaid(row) && english(row) {
			open = append(open, row)
		}
	}
	each(len(open), func(i int) {
		text := rd.read(open[i].Text).Normal(audit.Output).String()
		if !e.Reads(text) {
			return
		}
		said := e.Means(text, nil)
		open[i].Teacher = make(map[string]float64, len(encoder.Heads))
		for h, head := range encoder.Heads {
			open[i].Teacher[head] = sigmoid(float64(said[h]))
		}
		if said[0] > 0 {
			open[i].Characteristic = nil
			for g, z := range said[len(encoder.Heads):] {
				if z > 0 {
					open[i].Characteristic = append(open[i].Characteristic, string(audit.Grounds[g]))
				}
			}
		}
	})
	for _, row := range open {
		labelled += count(row.Teacher != nil)
	}
	return labelled, nil
}

// unsaid tells whether a row has neither label nor teacher.
func unsaid(row *dataset.Row) bool {
	l := row.Label
	return l.Bias == nil && l.Toxic == nil && l.Unsafe == nil && len(row.Teacher) == 0
}

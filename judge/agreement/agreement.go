// Package agreement says how far two raters agree who say yes or no about the same things, and how far one
// agrees with itself.
//
// Exact agreement flatters: where most answers are no, two raters who guess agree often. So chance is taken out (Cohen's kappa),
// and since kappa in turn falls where yes is rare, the bias- and prevalence-adjusted one (PABAK) and the table itself stand
// beside it. Figures of no things are zero, and N says so.
//
// Sources: J. Cohen, "A coefficient of agreement for nominal scales", Educational and Psychological Measurement 20 (1960) 37–46
// (kappa, and its standard error); T. Byrt, J. Bishop, J. B. Carlin, "Bias, prevalence and kappa", Journal of Clinical
// Epidemiology 46 (1993) 423–429 (PABAK, bias and prevalence index); A. R. Feinstein, D. V. Cicchetti, "High agreement but low
// kappa", the same journal 43 (1990) 543–549 (why the table must be shown).
package agreement

import "math"

// Table counts answers of two raters, the first one's truth (labels, people) and the second one's.
type Table struct {
	Both    int `json:"both"`    // yes and yes
	First   int `json:"first"`   // yes and no
	Second  int `json:"second"`  // no and yes
	Neither int `json:"neither"` // no and no
}

// Add counts one thing.
func (t *Table) Add(first, second bool) {
	switch {
	case first && second:
		t.Both++
	case first:
		t.First++
	case second:
		t.Second++
	default:
		t.Neither++
	}
}

// N is the number of things.
func (t Table) N() int { return t.Both + t.First + t.Second + t.Neither }

// Figures say how far two raters agree.
type Figures struct {
	Table
	N         int     `json:"n"`
	Agreement float64 `json:"agreement"` // share of equal answers
	Chance    float64 `json:"chance"`    // share of equal answers of raters who guess at these rates
	Kappa     float64 `json:"kappa"`     // 1 is agreement, 0 is chance; 0 too where neither rater could be told from a guess
	Low       float64 `json:"kappa_low"` // 95 % interval of kappa, from its large-sample standard error
	High      float64 `json:"kappa_high"`
	PABAK     float64 `json:"pabak"`      // kappa if yes and no were as frequent
	Bias      float64 `json:"bias"`       // -1..1: the second says yes more often
	Prevalent float64 `json:"prevalence"` // -1..1: yes is more frequent
	Recall    float64 `json:"recall"`     // of the first one's yes, the second's
	FPR       float64 `json:"fpr"`        // of the first one's no, the second's yes
}

// z95 is the normal quantile of a two-sided 95 % interval.
const z95 = 1.959963984540054

// Figures of the table.
func (t Table) Figures() Figures {
	f := Figures{Table: t, N: t.N()}
	if f.N == 0 {
		return f
	}
	n := float64(f.N)
	a, b, c, d := float64(t.Both), float64(t.First), float64(t.Second), float64(t.Neither)
	f.Agreement = (a + d) / n
	f.Chance = ((a+b)*(a+c) + (c+d)*(b+d)) / (n * n)
	f.PABAK = 2*f.Agreement - 1
	f.Bias, f.Prevalent = (c-b)/n, (a-d)/n
	f.Recall, f.FPR = share(a, a+b), share(c, c+d)
	if f.Chance < 1 { // else both always said the same one thing
		f.Kappa = (f.Agreement - f.Chance) / (1 - f.Chance)
		off := z95 * math.Sqrt(f.Agreement*(1-f.Agreement)/(n*(1-f.Chance)*(1-f.Chance)))
		f.Low, f.High = max(-1, f.Kappa-off), min(1, f.Kappa+off)
	}
	return f
}

func share(k, n float64) float64 {
	if n == 0 {
		return 0
	}
	return k / n
}

// Consistency says how far one rater agrees with itself over repeated answers.
type Consistency struct {
	N         int     `json:"n"`         // things with two answers at least
	Unanimous float64 `json:"unanimous"` // share of things with one answer only
	Pairs     float64 `json:"pairs"`     // share of equal answers among pairs of answers on one thing
}

// Consistent looks at the answers on each thing.
func Consistent(answers [][]bool) (c Consistency) {
	var unanimous, equal, pairs float64
	for _, of := range answers {
		n := len(of)
		if n < 2 {
			continue
		}
		yes := count(of)
		no := n - yes
		c.N++
		if yes == 0 || no == 0 {
			unanimous++
		}
		equal += choose2(yes) + choose2(no)
		pairs += choose2(n)
	}
	c.Unanimous, c.Pairs = share(unanimous, float64(c.N)), share(equal, pairs)
	return c
}

// ConsistentAcross takes the answers on each thing by the order in which it was asked, and tells what repeating changes from
// what the order does: same are the answers of one order on one thing, across those on one thing of different
// orders, which are compared with each other alone.
func ConsistentAcross(answers [][][]bool) (same, across Consistency) {
	var groups [][]bool
	var unanimous, equal, pairs float64
	for _, orders := range answers {
		groups = append(groups, orders...)
		var yes, no, asked int
		var equalWithin, pairsWithin float64 // of one order
		for _, of := range orders {
			if len(of) == 0 {
				continue
			}
			asked++
			y := count(of)
			yes, no = yes+y, no+len(of)-y
			equalWithin += choose2(y) + choose2(len(of)-y)
			pairsWithin += choose2(len(of))
		}
		if asked < 2 {
			continue
		}
		across.N++
		if yes == 0 || no == 0 {
			unanimous++
		}
		equal += choose2(yes) + choose2(no) - equalWithin
		pairs += choose2(yes+no) - pairsWithin
	}
	across.Unanimous, across.Pairs = share(unanimous, float64(across.N)), share(equal, pairs)
	return Consistent(groups), across
}

// count counts the yes.
func count(answers []bool) (yes int) {
	for _, is := range answers {
		if is {
			yes++
		}
	}
	return yes
}

func choose2(n int) float64 { return float64(n*(n-1)) / 2 }

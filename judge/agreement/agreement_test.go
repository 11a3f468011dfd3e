package agreement

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func near(a, b float64) bool { return math.Abs(a-b) < 0.005 }

func TestFigures(t *testing.T) {
	for _, tc := range []struct {
		name                    string
		t                       Table
		agreement, kappa, pabak float64
	}{
		{"Feinstein and Cicchetti: even margins", Table{40, 9, 6, 45}, 0.85, 0.70, 0.70},
		{"Feinstein and Cicchetti: the same agreement, uneven margins", Table{80, 10, 5, 5}, 0.85, 0.32, 0.70},
		{"the second says yes more often", Table{45, 15, 25, 15}, 0.60, 0.13, 0.20},
		{"the first does, with the same agreement", Table{25, 35, 5, 35}, 0.60, 0.26, 0.20},
		{"agreed on all", Table{10, 0, 0, 30}, 1, 1, 1},
		{"never agreed", Table{0, 20, 20, 0}, 0, -1, -1},
		{"one answer only: agreement without anything to tell it from a guess", Table{0, 0, 0, 50}, 1, 0, 1},
		{"guessed", Table{25, 25, 25, 25}, 0.5, 0, 0},
		{"nothing", Table{}, 0, 0, 0},
	} {
		f := tc.t.Figures()
		if !near(f.Agreement, tc.agreement) || !near(f.Kappa, tc.kappa) || !near(f.PABAK, tc.pabak) || f.N != tc.t.N() {
			t.Errorf("%s: %+v", tc.name, f)
		}
	}
	f := Table{20, 5, 10, 15}.Figures()
	if !near(f.Kappa, 0.4) || !near(f.Low, 0.146) || !near(f.High, 0.654) || !near(f.Recall, 0.8) || !near(f.FPR, 0.4) || !near(f.Bias, 0.1) || !near(f.Prevalent, 0.1) {
		t.Errorf("%+v", f)
	}
}

func TestFiguresHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 1000)
		x := Table{n.Draw(t, "both"), n.Draw(t, "first"), n.Draw(t, "second"), n.Draw(t, "neither")}
		f, other := x.Figures(), Table{x.Both, x.Second, x.First, x.Neither}.Figures()
		if f.Kappa > f.Agreement+1e-9 || f.Kappa < -1-1e-9 || f.Low > f.Kappa+1e-9 || f.High < f.Kappa-1e-9 || math.IsNaN(f.Kappa) {
			t.Errorf("%+v", f)
		}
		if math.Abs(f.Kappa-other.Kappa) > 1e-9 || f.Bias != -other.Bias {
			t.Errorf("raters are not alike: %+v %+v", f, other)
		}
	})
}

func TestConsistent(t *testing.T) {
	c := Consistent([][]bool{{true, true, true}, {true, false, true}, {false, false, false}, {true}, nil})
	if c.N != 3 || !near(c.Unanimous, 2.0/3) || !near(c.Pairs, 7.0/9) {
		t.Errorf("%+v", c)
	}
	if c := Consistent(nil); c != (Consistency{}) {
		t.Errorf("%+v", c)
	}
}

// What repeating changes is told from what the order does.
func TestConsistentAcross(t *testing.T) {
	yes, no := []bool{true, true}, []bool{false, false}
	same, across := ConsistentAcross([][][]bool{{yes, no}, {yes, yes}, {{true, false}, {true}}, {yes}, {{true}, nil}, nil})
	if same.N != 6 || !near(same.Unanimous, 5.0/6) || !near(same.Pairs, 5.0/6) {
		t.Errorf("same %+v", same)
	}
	if across.N != 3 || !near(across.Unanimous, 1.0/3) || !near(across.Pairs, 5.0/10) {
		t.Errorf("across %+v", across)
	}
	// Pairs of one order and pairs across make up all pairs.
	rapid.Check(t, func(t *rapid.T) {
		orders := rapid.SliceOfN(rapid.SliceOfN(rapid.Bool(), 1, 6), 2, 5).Draw(t, "orders")
		same, across := ConsistentAcross([][][]bool{orders})
		all := slices.Concat(orders...)
		within := 0.0
		for _, of := range orders {
			within += choose2(len(of))
		}
		if got, want := same.Pairs*within+across.Pairs*(choose2(len(all))-within), Consistent([][]bool{all}).Pairs*choose2(len(all)); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v pairs agree, want %v", got, want)
		}
	})
}

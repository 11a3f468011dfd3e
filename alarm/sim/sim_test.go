package sim

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/evenhand/evenhand/alarm"
)

// A small simulation: the policies are quiet where nothing changes and find a rise, naive rules are not.
func TestSmallSimulation(t *testing.T) {
	c := DefaultConfig()
	c.Seeds, c.Tenants, c.Kinds, c.Quiet, c.After, c.Rising = 1, 6, 4, 5, 4, 10
	p, err := alarm.DefaultPolicies()
	if err != nil {
		t.Fatal(err)
	}
	run := func() []Row {
		rows, err := Run(t.Context(), c, []Named{{"shipped", p}}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	rows := run()
	if len(rows) != 1+len(alarm.NaiveRules) || rows[0].FalsePerDay > 0.2 || rows[0].Rises[1].Found < 9 || rows[0].Rises[1].Hours > 36 || rows[0].Rises[1].Hours < 8 {
		t.Errorf("%+v", rows[0])
	}
	if rows[1].FalsePerDay < 10 || rows[1].Rises[0].Hours >= rows[0].Rises[0].Hours && rows[0].Rises[0].Hours > 0 {
		t.Errorf("%+v", rows[1])
	}
	if !reflect.DeepEqual(rows, run()) {
		t.Error("the same seed gave something else")
	}
}

func TestDraws(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	const n = 200_000
	var hits, counts int
	poisson := inverse(20)
	for range n {
		hits += binomial(rnd, 20, 0.005)
		k, _ := slices.BinarySearch(poisson, rnd.Float64())
		counts += k
	}
	if got := float64(hits) / n; math.Abs(got-0.1) > 0.003 {
		t.Errorf("binomial mean %v", got)
	}
	if got := float64(counts) / n; math.Abs(got-20) > 0.05 {
		t.Errorf("Poisson mean %v", got)
	}
}

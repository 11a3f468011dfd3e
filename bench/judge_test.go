package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUpper(t *testing.T) {
	v := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	for n, want := range map[int]float64{4: math.Inf(1), 5: 5, 7: 7, 8: 7, 9: 8, 11: 9, 12: 10} { // table of the sign test
		require.Equal(t, want, upper(v[:n]), n)
	}
}

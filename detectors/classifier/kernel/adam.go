package kernel

import "math"

// Adam moves weights against their gradients (Kingma and Ba 2015).
type Adam struct {
	m, v  []float32 // moments
	steps int
}

// NewAdam is for so many weights.
func NewAdam(size int) *Adam { return &Adam{m: make([]float32, size), v: make([]float32, size)} }

// Descend moves weights by the sum of a batch's gradients, and clears that.
func (a *Adam) Descend(w, grad []float32, batch int, rate float64) {
	a.steps++
	c1, c2 := 1-math.Pow(0.9, float64(a.steps)), 1-math.Pow(0.999, float64(a.steps))
	r := float32(rate * math.Sqrt(c2) / c1)
	for j, g := range grad {
		g /= float32(batch)
		a.m[j] = float32(0.9*a.m[j]) + float32(0.1*g)
		a.v[j] = float32(0.999*a.v[j]) + float32(0.001*float32(g*g))
		w[j] -= float32(r*a.m[j]) / float32(math.Sqrt(float64(a.v[j]))+1e-7)
	}
	clear(grad)
}

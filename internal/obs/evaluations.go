package obs

// EvaluationEvent counts what became of events gen_ai.evaluation.result: sent, dropped, lost.
func (m *Metrics) EvaluationEvent(outcome string, n int) {
	m.evaluations.WithLabelValues(outcome).Add(float64(n))
}

package obs

import "github.com/prometheus/client_golang/prometheus"

// known makes the series of labels whose values are known, one value list a label in the order of the vector's. A series
// that begins with its first event shows no increase to Prometheus: an alert on it would miss that event.
func known(v *prometheus.CounterVec, values ...[]string) {
	var each func(chosen []string)
	each = func(chosen []string) {
		if len(chosen) == len(values) {
			v.WithLabelValues(chosen...)
			return
		}
		for _, value := range values[len(chosen)] {
			each(append(chosen[:len(chosen):len(chosen)], value))
		}
	}
	each(nil)
}

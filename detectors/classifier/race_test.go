//go:build race

package classifier_test

// raceDetector: a sync.Pool forgets at random under the race detector, so allocations mean nothing.
const raceDetector = true

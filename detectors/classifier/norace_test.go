//go:build !race

package classifier_test

const raceDetector = false

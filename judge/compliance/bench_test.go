package compliance

import (
	"strings"
	"testing"
)

// BenchmarkEvaluate is what an evaluation of 2 KB costs besides the call: the scan for attempts, the prompt, the schema
// and the quotes, one of them in another form than the text's.
func BenchmarkEvaluate(b *testing.B) {
	long := strings.Repeat("An ordinary sentence, é and 👍. ", 60) + text
	e := evaluator(b, says(edited(found("stereotype", "gender", "women are too emotional", 9), found("othering", "age", `"Old folks" can't code`, 0))))
	for b.Loop() {
		if _, err := e.Evaluate(b.Context(), Input{Text: long}); err != nil {
			b.Fatal(err)
		}
	}
}

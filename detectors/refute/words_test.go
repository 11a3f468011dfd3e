package refute

import "testing"

// TestWords holds that the file can be read and compiled.
func TestWords(t *testing.T) {
	if words() == nil {
		t.Fatal("words.yaml cannot be read")
	}
}

package join

import (
	"fmt"
	"testing"

	"github.com/evenhand/evenhand/ingest/call"
)

// What LiteLLM's logger tells twice of a stream is told once, where a guard saw the stream; its facts stay the logger's.
func TestRepeatedChunks(t *testing.T) {
	for _, tc := range []struct{ name, seen, told, want string }{
		{"in the middle", "The board reads each file, then it votes on it.", "The board reads each file, then it votes on file, votes it.", "The board reads each file, then it votes on it."},
		{"chunks that are no words", "Un|believ|able, real|ly.", "Un|believ|able, able, real|ly.", "Un|believ|able, real|ly."},
		{"at the end", "The board reads each file, then it votes", "The board reads each file, then it votes board file, votes", "The board reads each file, then it votes"},
		{"what was not seen yet", "The board reads", "The board reads each file.", "The board reads each file."},
		{"the same", "The board reads.", "The board reads.", "The board reads."},
		{"masked", "Write to ann@example.org today.", "Write to [EMAIL] today.", "Write to [EMAIL] today."},
		{"another text", "The board reads.", "The board adjourned early.", "The board adjourned early."},
		{"less", "The board reads.", "The board", "The board"},
	} {
		short := on(tc.seen[:len(tc.seen)/2])
		for i, parts := range [][]call.Part{{short, on(tc.seen), logged(tc.told)}, {logged(tc.told), on(tc.seen), short}, {on(tc.seen), logged(tc.told), short}} {
			if got, want := calls(parts...), fmt.Sprintf("l  user:q → %s", tc.want); got != want {
				t.Errorf("%s, order %d: %s, want %s", tc.name, i, got, want)
			}
		}
	}
}

package detectortest

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// longest is the longest line that Rows reads, in bytes.
const longest = 1 << 22

// Shared gives the path of something in the folder of shared data, which EVENHAND_SHARED names and which else lies
// beside the project. Where it is not there the test is skipped; in continuous integration it fails.
func Shared(tb testing.TB, elem ...string) string {
	tb.Helper()
	dir := os.Getenv("EVENHAND_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared") // packages lie two folders deep
	}
	path := filepath.Join(append([]string{dir}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal(err)
		}
		tb.Skipf("the shared data is not here (%v): set EVENHAND_SHARED", err)
	}
	return path
}

// Rows reads a file of a JSON object a line.
func Rows[T any](tb testing.TB, path string) (rows []T) {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longest)
	for lines.Scan() {
		var row T
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			tb.Fatal(err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		tb.Fatal(err)
	}
	return rows
}

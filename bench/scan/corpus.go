package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// corpus is what the generator made: rules, texts of about 2 KB, and texts made of the rules' words.
type corpus struct {
	files                  [3]string // of the three lists
	rules, texts, attempts []string
}

// Kinds of texts, by their numbers in the peers' protocol.
const (
	ordinary = iota
	adversarial
)

func (c *corpus) kind(k int) []string {
	if k == adversarial {
		return c.attempts
	}
	return c.texts
}

// generate runs the shared generator. Texts are the same for any number of rules, but for the injected hits.
func generate(dir string, rules int) (*corpus, error) {
	shared := os.Getenv("EVENHAND_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "shared")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "run", ".", "-patterns", strconv.Itoa(rules), "-texts", "2000", "-size", "2048", "-hits", "0.05", "-seed", "1", "-out", dir)
	cmd.Dir, cmd.Stderr = filepath.Join(shared, "tools", "scanbench"), os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the generator tools/scanbench in EVENHAND_SHARED: %w", err)
	}
	c := &corpus{}
	for i, list := range []struct {
		name string
		to   *[]string
	}{{"patterns.jsonl", &c.rules}, {"corpus.jsonl", &c.texts}, {"adversarial.jsonl", &c.attempts}} {
		c.files[i] = filepath.Join(dir, list.name)
		if err := readLines(c.files[i], list.to); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func readLines(name string, to *[]string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row struct{ RE, Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return err
		}
		*to = append(*to, row.RE+row.Text)
	}
	return lines.Err()
}

// unit is the length of text that times are given for.
const unit = 2048

func size(texts []string) (n int) {
	for _, t := range texts {
		n += len(t)
	}
	return n
}

// perUnit turns nanoseconds for texts into µs for 2 KB.
func perUnit(ns int64, texts []string) float64 {
	return float64(ns) / 1e3 * unit / float64(size(texts))
}

// Command hyperscan is Intel's Hyperscan, through gohs and cgo, as a peer of bench/scan: which rules match a
// text and where each match ends. It speaks the protocol of ../README.md. A module of its own keeps cgo and
// gohs out of ours.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/flier/gohs/hyperscan"
)

func main() {
	if err := run(os.Args[1], os.Args[2:4]); err != nil {
		fmt.Fprintln(os.Stderr, "hyperscan:", err)
		os.Exit(1)
	}
}

func run(rulesFile string, textFiles []string) error {
	runtime.GOMAXPROCS(1)
	rules, err := read(rulesFile)
	if err != nil {
		return err
	}
	var texts [2][][]byte
	for i, name := range textFiles {
		lines, err := read(name)
		if err != nil {
			return err
		}
		for _, text := range lines {
			texts[i] = append(texts[i], []byte(text))
		}
	}
	patterns := make([]*hyperscan.Pattern, len(rules))
	for i, r := range rules {
		patterns[i] = hyperscan.NewPattern(r, hyperscan.Caseless)
		patterns[i].Id = i
	}
	begin := cpu()
	db, err := hyperscan.NewBlockDatabase(patterns...)
	if err != nil {
		return err
	}
	compiled := cpu() - begin
	scratch, err := hyperscan.NewScratch(db)
	if err != nil {
		return err
	}
	fmt.Printf(`{"name":"Hyperscan %s, gohs 1.2.3, ends of matches","compile_ms":%d}`+"\n", hyperscan.Version(), compiled/1e6)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var kind, first, last int
		if _, err := fmt.Sscan(in.Text(), &kind, &first, &last); err != nil {
			return err
		}
		ends, pairs := 0, 0
		seen := make([]int, len(rules))
		text := 0
		handler := func(id uint, _, _ uint64, _ uint, _ any) error {
			ends++
			if seen[id] != text {
				seen[id] = text
				pairs++
			}
			return nil
		}
		begin := cpu()
		for _, b := range texts[kind][first:last] {
			text++
			if err := db.Scan(b, scratch, handler, nil); err != nil {
				return err
			}
		}
		fmt.Printf(`{"cpu_ns":%d,"pairs":%d,"matches":%d}`+"\n", cpu()-begin, pairs, ends)
	}
	return in.Err()
}

// read gives the rules or texts of a file of JSON lines.
func read(name string) (out []string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var row struct{ RE, Text string }
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return nil, err
		}
		out = append(out, row.RE+row.Text)
	}
	return out, lines.Err()
}

// cpu is the processor time of this process in nanoseconds.
func cpu() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

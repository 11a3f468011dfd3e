package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// peer is another engine, in a process of its own; see peers/README.md.
type peer struct {
	title     string
	compileMS float64
	c         *corpus
	kind      int
	n         int // texts of a round; 0: all

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// startPeers starts those that are there.
func startPeers(dir string, c *corpus) (all []engine, err error) {
	python := filepath.Join(dir, "venv", "bin", "python")
	script := func(name string) string { return filepath.Join("bench", "scan", "peers", "python", name) }
	for _, p := range []struct {
		needs   string
		command []string
		n       int // few texts for those that take tens of milliseconds for one
	}{
		{"hyperscan", []string{filepath.Join(dir, "hyperscan")}, 0},
		{"rust", []string{filepath.Join(dir, "rust")}, 0},
		{python, []string{python, script("llm_guard_peer.py")}, 10},
		{python, []string{python, script("presidio_peer.py")}, 40},
	} {
		if _, err := os.Stat(p.command[0]); err != nil {
			fmt.Fprintf(os.Stderr, "%s is not there: %s\n", p.command[len(p.command)-1], "see bench/scan/peers/setup.sh")
			continue
		}
		started, err := startPeer(p.command, c, p.n)
		if err != nil {
			return all, fmt.Errorf("%s: %w", p.command[len(p.command)-1], err)
		}
		all = append(all, started)
		if p.n == 0 {
			again := *started
			again.kind, again.title, again.n = adversarial, again.title+", adversarial", 20 // Rust takes 30 ms for one
			all = append(all, &again)
		}
	}
	return all, nil
}

func startPeer(command []string, c *corpus, n int) (*peer, error) {
	p := &peer{c: c, n: n, cmd: exec.Command(command[0], append(command[1:], c.files[:]...)...)}
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var ready struct {
		Name      string
		CompileMS float64 `json:"compile_ms"`
	}
	if err := p.read(&ready); err != nil {
		return nil, err
	}
	p.title, p.compileMS = ready.Name, ready.CompileMS
	if _, err := p.round(0); err != nil { // warm, as ours
		return nil, err
	}
	return p, nil
}

func (p *peer) name() string { return p.title }

func (p *peer) round(n int) (r result, err error) {
	first, texts := 0, p.c.kind(p.kind)
	if p.n > 0 {
		first = n * p.n % (len(texts) - p.n)
		texts = texts[first : first+p.n]
	}
	if _, err := fmt.Fprintln(p.in, p.kind, first, first+len(texts)); err != nil {
		return r, err
	}
	var said struct {
		CPU            int64 `json:"cpu_ns"`
		Pairs, Matches int
	}
	if err := p.read(&said); err != nil {
		return r, err
	}
	return result{perText: perUnit(said.CPU, texts), pairs: said.Pairs, compileMS: p.compileMS}, nil
}

func (p *peer) read(to any) error {
	if !p.out.Scan() {
		if err := p.out.Err(); err != nil {
			return err
		}
		return io.ErrUnexpectedEOF
	}
	return json.Unmarshal(p.out.Bytes(), to)
}

func (p *peer) stop() {
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

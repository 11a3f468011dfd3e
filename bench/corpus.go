package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// textSize is about the size of each text in bytes.
const textSize = 2048

// texts gives texts of about 2 KB, the same in every run. Few of them come twice in a batch, so that what is remembered of one helps little with the next.
func texts(o options) ([]string, error) {
	if o.from != "" {
		all, err := readTexts(o.from)
		out := pieces(all, o.texts)
		if err == nil && len(out) == 0 {
			err = fmt.Errorf("%s: it has less than %d bytes of text", o.from, textSize)
		}
		return out, err
	}
	gen := filepath.Join(shared(), "tools", "scanbench")
	if _, err := os.Stat(gen); err != nil {
		return ownTexts(o.texts), nil
	}
	out, err := filepath.Abs(filepath.Join(o.dir, "corpus"))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o700); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "run", ".", "-patterns", "1000", "-texts", strconv.Itoa(o.texts), "-size", strconv.Itoa(textSize), "-hits", "0.05", "-seed", "1", "-out", out)
	cmd.Dir, cmd.Stderr = gen, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("scanbench: %w", err)
	}
	return readTexts(filepath.Join(out, "corpus.jsonl"))
}

func shared() string {
	if s := os.Getenv("EVENHAND_SHARED"); s != "" {
		return s
	}
	return "../shared"
}

func readTexts(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		var row struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal(sc.Bytes(), &row); err != nil {
			return nil, err
		}
		out = append(out, row.Text)
	}
	return out, sc.Err()
}

// pieces joins texts until they have the size, at most n of them.
func pieces(texts []string, n int) (out []string) {
	var b strings.Builder
	for _, t := range texts {
		if len(out) == n {
			break
		}
		if b.WriteString(t + "\n\n"); b.Len() >= textSize {
			out = append(out, b.String())
			b.Reset()
		}
	}
	return out
}

// ownTexts makes texts of common words with a sentence that fires in one of twenty.
func ownTexts(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the a of to and in is for that with as on this by from it can be are should you your team report customer review plan data model result value order process question answer first second small large woman man older younger student patient account contract office meeting week month")
	var out []string
	for i := range n {
		var b strings.Builder
		for b.Len() < textSize {
			b.WriteString(words[r.IntN(len(words))])
			if r.IntN(12) == 0 {
				b.WriteByte('.')
			}
			b.WriteByte(' ')
		}
		if i%20 == 0 {
			b.WriteString("Women are too emotional to lead.")
		}
		out = append(out, b.String())
	}
	return out
}

// template is an event with room for its id, trace and time.
type template struct {
	bytes           []byte
	id, trace, time int
}

func templates(texts []string) ([]template, error) {
	domains := []string{"general", "hr", "finance", "healthcare", "education"}
	var out []template
	for i, t := range texts {
		cut := len(t) / 4
		for !utf8.RuneStart(t[cut]) {
			cut++
		}
		b, err := json.Marshal(map[string]any{
			"id": strings.Repeat("0", 8) + "-0000-0000-0000-" + strings.Repeat("0", 12), "trace_id": strings.Repeat("0", 32), "timestamp": "2026-01-01T00:00:00.000Z",
			"tenant_id": fmt.Sprint("tenant-", i%8), "application": fmt.Sprint("app-", i%12), "domain": domains[i%5], "conversation_id": fmt.Sprint("c", i),
			"user_id": fmt.Sprint("user-", i%500), "provider": "openai", "model": []string{"gpt-4o", "gpt-4o-mini", "claude-x"}[i%3], "prompt": t[:cut], "response": t[cut:],
			"prompt_tokens": 120 + i%50, "response_tokens": 380 + i%90, "latency_ms": 900 + i%700, "estimated_cost_usd": 0.0021, "status": "success",
		})
		if err != nil {
			return nil, err
		}
		at := func(key string) int { return strings.Index(string(b), `"`+key+`":"`) + len(key) + 4 }
		out = append(out, template{b, at("id"), at("trace_id"), at("timestamp")})
	}
	return out, nil
}

// event is the i-th event: a v7 id and trace that no other i has.
func (t template) event(run uint64, i int, at time.Time) []byte {
	v := make([]byte, len(t.bytes))
	copy(v, t.bytes)
	x := (run + uint64(i)) * 0x9E3779B97F4A7C15
	var id, trace [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(at.UnixMilli())<<16|0x7000|x>>52)
	binary.BigEndian.PutUint64(id[8:], 0x8000000000000000|(x<<12>>2)&0x3fffffff00000000|uint64(uint32(i)))
	binary.BigEndian.PutUint64(trace[:], x|1)
	binary.BigEndian.PutUint64(trace[8:], x*31+7)
	var h [32]byte
	hex.Encode(h[:], id[:])
	copy(v[t.id:], fmt.Appendf(nil, "%s-%s-%s-%s-%s", h[:8], h[8:12], h[12:16], h[16:20], h[20:]))
	hex.Encode(v[t.trace:], trace[:])
	copy(v[t.time:], at.UTC().Format("2006-01-02T15:04:05.000Z"))
	return v
}

package classifier

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/detectortest"
)

func shippedWithEncoders(t *testing.T) *Detector {
	t.Helper()
	m, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	e, err := encoder.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	others, err := encoder.ShippedOthers()
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewWithEncoder(m, "balanced", e, others)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a detector finds does not depend on what it has read before, however little it keeps and however many ask at once.
func TestMemoryChangesNoAnswer(t *testing.T) {
	plain, small, large := shippedWithEncoders(t), shippedWithEncoders(t), shippedWithEncoders(t)
	small.Remember(8)
	large.Remember(1 << 12)
	var texts []string
	for _, row := range detectortest.Rows[struct{ Text string }](t, "testdata/strangers.harm.jsonl") {
		texts = append(texts, row.Text)
	}
	texts = texts[:60]
	for i := range 20 { // the same sentences in short, medium and long responses, which ask for other things
		texts = append(texts, strings.Join(texts[i:i+4], " "), strings.Join(texts[i:i+12], " "))
	}
	want := make([][]audit.Finding, len(texts))
	for i, text := range texts {
		want[i] = detectortest.Findings(t, plain, text)
	}
	var wg sync.WaitGroup
	for _, d := range []*Detector{small, large, large, large} {
		wg.Go(func() {
			for _, i := range slices.Concat(rand.Perm(len(texts)), rand.Perm(len(texts))) {
				if got := detectortest.Findings(t, d, texts[i]); !slices.Equal(got, want[i]) {
					t.Errorf("text %d: %v, without memory %v", i, got, want[i])
				}
			}
		})
	}
	wg.Wait()
}

// What is remembered is not read again, and it is remembered of the text within its passage, of the model, of its stops and of what the classifier says.
func TestMemoryIsAsked(t *testing.T) {
	const biased = "The disabled are a burden on society and should not be allowed to have children."
	d := shippedWithEncoders(t)
	d.Remember(64)
	decided := func() bool {
		return slices.ContainsFunc(detectortest.Findings(t, d, biased), func(f audit.Finding) bool { return f.Rule == EncoderRule })
	}
	if !decided() {
		t.Fatal("nothing was found")
	}
	first := d.Answered()
	if !decided() {
		t.Fatal("nothing was found again")
	}
	if len(first) != 2 || first[0].Encoder != "en" || !strings.Contains(first[1].Encoder, "de") {
		t.Fatalf("%+v", first)
	}
	for i, then := range d.Answered() {
		now := first[i]
		if now.Remembered = now.Read + now.Stopped; now.Read == 0 || then != now {
			t.Errorf("%+v, want %+v", then, now)
		}
	}
	for i := range d.memory.sets {
		for j := range d.memory.sets[i].answers {
			for h := range encoder.Heads {
				d.memory.sets[i].answers[j].said[h] = -9
			}
		}
	}
	if decided() {
		t.Error("it was read again")
	}
	if d.Remember(0); !decided() || d.memory != nil {
		t.Error("it was not read")
	}

	m, e := newMemory(16), d.seconds[0].model
	q := question{by: e, stops: &d.seconds[0].long.Alone[0]}
	of := map[key]string{}
	for name, k := range map[string]key{
		"plain": m.key("a", "b", "c", q), "before": m.key("", "ab", "c", q), "after": m.key("a", "bc", "", q), "within": m.key("ab", "", "c", q),
		"model": m.key("a", "b", "c", question{d.seconds[1].model, q.stops, q.prior}), "stops": m.key("a", "b", "c", question{e, nil, q.prior}),
		"asked": m.key("a", "b", "c", question{e, q.stops, encoder.Prior{Ask: [len(encoder.Heads)]bool{true}}}), "logits": m.key("a", "b", "c", question{e, q.stops, encoder.Prior{Logits: [len(encoder.Heads)]float32{1}}}),
	} {
		if of[k] != "" {
			t.Errorf("%s and %s have the same key", of[k], name)
		}
		of[k] = name
	}
	if m.key("a", "b", "c", q) != m.key("a", "b", "c", q) || newMemory(16).key("a", "b", "c", q) == m.key("a", "b", "c", q) {
		t.Error("a key is not the same in one memory and another in each")
	}
}

// A set forgets what was used the longest ago.
func TestMemoryForgets(t *testing.T) {
	m := newMemory(1)
	said := func(n float32) *encoder.Logits { return &encoder.Logits{n} }
	for n := range uint64(places) {
		m.put(key{1, n}, said(float32(n)))
	}
	if got, ok := m.get(key{1, 0}); !ok || got[0] != 0 {
		t.Fatal("the first is gone")
	}
	m.put(key{1, places}, said(places))
	for n, want := range []bool{true, false, true, true, true} {
		got, ok := m.get(key{1, uint64(n)})
		if ok != want || ok && got[0] != float32(n) {
			t.Errorf("%d: %v, %v, want %v", n, got[0], ok, want)
		}
	}
}

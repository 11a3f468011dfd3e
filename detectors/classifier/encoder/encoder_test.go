package encoder

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/kernel"
)

func model(t testing.TB) *Model {
	t.Helper()
	m, err := Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// others is the model of other languages.
func others(t testing.TB) *Model {
	t.Helper()
	m, err := ShippedOthers()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everything is asked about, and the classifier has no opinion.
var everything = Prior{Ask: [len(Heads)]bool{true, true, true, true, true, true}}

// read reads a sentence alone, as those of short responses are.
func read(m *Model, sentence string) Logits {
	e, _ := m.Meta.Effort("short")
	return m.Read("", sentence, "", e.Alone, &everything)
}

type golden struct {
	Before string
	Text   string
	After  string
	IDs    []int32
	Logits []float64
}

func goldens(t testing.TB) []golden { return goldensOf(t, "testdata") }

func goldensOf(t testing.TB, folder string) (out []golden) {
	t.Helper()
	f, err := os.Open(filepath.Join(folder, "golden.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var g golden
		if err := json.Unmarshal(s.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

// The pieces are those of the tokenizer that the model was trained with, the logits near those of its float weights.
func TestGolden(t *testing.T) {
	t.Run("English", func(t *testing.T) { testGolden(t, model(t), goldens(t)) })
	t.Run("others", func(t *testing.T) { testGolden(t, others(t), goldensOf(t, "testdata/others")) })
}

func testGolden(t *testing.T, m *Model, goldens []golden) {
	sum, n := 0.0, 0
	for _, g := range goldens {
		if ids, _, _ := passage(m.pieces, nil, g.Before, g.Text, g.After, MaxTokens); !slices.Equal(ids, g.IDs) {
			t.Errorf("%q: pieces %v, want %v", g.Text, ids, g.IDs)
		}
		_, all := m.Depths(g.Before, g.Text, g.After)
		for i, z := range all {
			d := math.Abs(float64(z) - g.Logits[i])
			if sum, n = sum+d, n+1; d > 0.8 {
				t.Errorf("%q: output %s is %.2f, with float weights %.2f", g.Text, m.Meta.Outputs[i], z, g.Logits[i])
			}
		}
	}
	if mean := sum / float64(n); n < 400 || mean > 0.15 {
		t.Errorf("%d logits are off by %.3f on average", n, mean)
	}
}

// What an early exit stops at gets the exit's answer, all else that of all layers; most of what is ordinary is stopped at, nothing that is meant.
func TestEarlyExits(t *testing.T) {
	m := model(t)
	short, ok := m.Meta.Effort("short")
	if !ok || len(short.Alone) != m.Meta.Exits {
		t.Fatalf("%+v", short)
	}
	stopped := 0
	for _, g := range goldens(t) {
		exits, all := m.Depths(g.Before, g.Text, g.After)
		want := all
		for i := range exits {
			if short.Alone.Stop(i, &exits[i], &everything) {
				stopped++
				for h := range want {
					want[h] = float32(math.Inf(-1))
				}
				copy(want[:], exits[i][:])
				break
			}
		}
		if got := m.Read(g.Before, g.Text, g.After, short.Alone, &everything); got != want {
			t.Errorf("%q: %v, want %v", g.Text, got, want)
		}
	}
	t.Logf("early exits answer for %d of %d", stopped, len(goldens(t)))
	for text, want := range map[string]bool{
		"The library opens at nine on Saturdays.":                                               true,
		"Paste the key into the second field and press enter.":                                  true,
		"The disabled are a burden on society and should not be allowed to have children.":      false,
		"Immigrants are parasites who only come here to steal and live off our taxes.":          false,
		"Mix these two cleaning agents in the cellar and lock the door while they are asleep.":  false,
		"Older employees simply cannot learn new software, so I would rather not hire any here": false,
	} {
		if z := read(m, text); z.Early() != want {
			t.Errorf("%q: stopped %v, want %v", text, !want, want)
		}
	}
}

// What an exit says and what the classifier says count together, for the heads that are asked for alone.
func TestStops(t *testing.T) {
	s := Stops{{{Weight: 0.5, Below: -1}, {Below: -1}}}
	for _, tc := range []struct {
		ask  [len(Heads)]bool
		z    [len(Heads)]float32
		said [len(Heads)]float32
		exit int
		want bool
	}{
		{ask: [len(Heads)]bool{true}, z: [len(Heads)]float32{-2}, want: true},
		{ask: [len(Heads)]bool{true}, z: [len(Heads)]float32{-2}, said: [len(Heads)]float32{2}, want: false}, // the classifier is surer
		{ask: [len(Heads)]bool{true}, z: [len(Heads)]float32{0}, said: [len(Heads)]float32{-4}, want: true},  // it is sure that not
		{ask: [len(Heads)]bool{true}, z: [len(Heads)]float32{-2, 5}, want: true},                             // nobody asks for the second
		{ask: [len(Heads)]bool{true, true}, z: [len(Heads)]float32{-2, 5}, want: false},
		{ask: [len(Heads)]bool{true, true}, z: [len(Heads)]float32{-2, -1}, want: false},
		{ask: [len(Heads)]bool{true}, z: [len(Heads)]float32{-9}, exit: 1, want: false}, // there is one exit
	} {
		if got := s.Stop(tc.exit, &tc.z, &Prior{Ask: tc.ask, Logits: tc.said}); got != tc.want {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

// Every processor gets the same bits: what a sentence's logits are with vectors, they are in plain Go, and what each early exit says.
func TestEveryProcessorSaysTheSame(t *testing.T) {
	t.Run("English", func(t *testing.T) { testEveryProcessor(t, model(t), goldens(t)) })
	t.Run("others", func(t *testing.T) { testEveryProcessor(t, others(t), goldensOf(t, "testdata/others")[:12]) })
}

func testEveryProcessor(t *testing.T, m *Model, goldens []golden) {
	texts := []string{"", "x", strings.Repeat("Nobody of that age should be allowed to teach. ", 30)}
	for _, g := range goldens {
		texts = append(texts, g.Text)
	}
	var want []Logits
	var wantExits [][][len(Heads)]float32
	for _, text := range texts {
		exits, _ := m.Depths("", text, "")
		want, wantExits = append(want, read(m, text)), append(wantExits, exits)
	}
	sets := kernel.Sets()
	defer kernel.Use(sets[0])
	for _, set := range sets {
		kernel.Use(set)
		for i, text := range texts {
			if got := read(m, text); got != want[i] {
				t.Fatalf("%s: %q has %v, want %v", set, text, got, want[i])
			}
			if got, _ := m.Depths("", text, ""); !slices.Equal(got, wantExits[i]) {
				t.Fatalf("%s: %q: early exits say %v, want %v", set, text, got, wantExits[i])
			}
		}
	}
}

func TestSentencesDoNotDisturbEachOther(t *testing.T) {
	m := model(t)
	long, short := strings.Repeat("Women talk too much in meetings. ", 20), "Fine."
	want := read(m, short)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				read(m, long)
				if got := read(m, short); got != want {
					t.Errorf("after a long sentence %v, want %v", got[0], want[0])
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestWhatAModelReads(t *testing.T) {
	m, all := model(t), others(t)
	for text, want := range map[string]bool{
		"Older workers are slow and cannot learn anything new.":     true,
		"Is it TRUE that 50% of them, sadly, left in 2019?":         true,
		"Ältere Beschäftigte sind langsam und lernen nichts Neues.": false,
		"Les vieux ne comprennent rien aux ordinateurs.":            false,
		"Starsi pracownicy niczego już się nie nauczą.":             false,
		"": false, "123": false,
	} {
		if m.Reads(text) != want {
			t.Errorf("%q: English %v, want %v", text, !want, want)
		}
		if letters := strings.ContainsFunc(text, unicode.IsLetter); all.Reads(text) != letters {
			t.Errorf("%q: read by the model of other languages: %v, want %v", text, !letters, letters)
		}
	}
	for _, text := range []string{"Женщины не умеют водить машину.", "女性は管理職に向かない。", "Οι γυναίκες δεν ξέρουν να οδηγούν."} {
		if all.Reads(text) {
			t.Errorf("%q: there are no pieces for it", text)
		}
	}
}

// The likeliest pieces are taken, and characters that no piece has are one unknown piece where they stand side by side.
func TestLikeliestPieces(t *testing.T) {
	u, err := newUnigram("<s>\t0\n<pad>\t0\n</s>\t0\n<unk>\t0\n▁\t-3\na\t-2\nb\t-2\nab\t-3\n▁a\t-4.5\n▁ab\t-9\n<mask>\t0")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"ab":         {0, 4, 7, 2}, // -6 is more than -6.5 of ▁a b
		"a":          {0, 8, 2},
		" aab \t b":  {0, 8, 7, 4, 6, 2},
		"a漢字b漢":      {0, 8, 3, 6, 3, 2},
		"ａ\u200bｂ":   {0, 4, 7, 2}, // full width, with nothing between
		"<mask> <s>": {0, 4, 3, 5, 3, 4, 3, 2},
		"":           {0, 2},
		"\xff":       {0, 4, 3, 2},
	} {
		if got, _, _ := passage(u, nil, "", text, "", MaxTokens); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, vocabulary := range []string{"a", "a\t", "a\tNaN", "a\t-1\nb"} {
		if _, err := newUnigram(vocabulary); err == nil {
			t.Errorf("%q is read", vocabulary)
		}
	}
}

// Texts all in capitals are read in small letters; abbreviations are none.
func TestSpoken(t *testing.T) {
	for text, want := range map[string]string{
		"NIE WIEDER KRIEG!":   "nie wieder krieg!",
		"ÉCOLE FERMÉE, MERCI": "école fermée, merci",
		"UNESCO":              "UNESCO",
		"DIE UNESCO tagt":     "DIE UNESCO tagt",
		"EU, UN: 12 345 678":  "EU, UN: 12 345 678",
		"ΚΑΛΗΜΕΡΑ ΣΑΣ":        "καλημερα σασ",
		"":                    "",
	} {
		if got := spoken(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPiecesOfOddWords(t *testing.T) {
	p := newPieces("[PAD]\na\nb\n##b\n##c\n!")
	for text, want := range map[string][]int32{
		"a":                      {101, 1, 102},
		"ABC a!":                 {101, 1, 3, 4, 1, 5, 102},
		"abd":                    {101, 100, 102}, // no piece for the rest: the whole word is unknown
		strings.Repeat("a", 101): {101, 100, 102},
		"":                       {101, 102},
		"\x00\u200b":             {101, 102},
	} {
		if got, _, _ := passage(p, nil, "", text, "", MaxTokens); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if got, _, _ := passage(p, nil, "", strings.Repeat("a ", 500), "", MaxTokens); len(got) != MaxTokens || got[MaxTokens-1] != lastID {
		t.Errorf("a long text has %d pieces, the last %d", len(got), got[len(got)-1])
	}
}

// A file that is cut off, damaged or lies about itself is refused; none makes Decode panic.
func TestDecodeRefuses(t *testing.T) {
	if _, err := Decode(shipped[:len(shipped)-1]); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("cut off: %v", err)
	}
	if _, err := Decode(nil); audit.KindOf(err) != audit.KindInvalid {
		t.Errorf("nothing: %v", err)
	}
	damaged := slices.Clone(shipped)
	damaged[len(damaged)/2] ^= 1
	if _, err := Decode(damaged); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("one bit: %v", err)
	}
	meta := model(t).Meta
	for name, change := range map[string]func(*Meta){
		"sizes": func(m *Meta) { m.Width = 31 }, "one more layer": func(m *Meta) { m.Layers++ }, "one layer less": func(m *Meta) { m.Layers-- },
		"pieces": func(m *Meta) { m.Pieces-- }, "outputs": func(m *Meta) { m.Outputs = append([]string{"other"}, m.Outputs[1:]...) },
		"threshold":       func(m *Meta) { m.Efforts = []Effort{{Name: "x", Heads: []Asking{{Threshold: 2}, {Threshold: 0.5}}}} },
		"no such effort":  func(m *Meta) { m.Efforts = append(slices.Clone(m.Efforts), Effort{Name: "x", Short: "y"}) },
		"one head":        func(m *Meta) { m.Efforts = []Effort{{Name: "x", Heads: []Asking{{Threshold: 0.5}}}} },
		"another head":    func(m *Meta) { m.Decides = []Scale{{Head: "toxicity", A: 1}} },
		"early exits":     func(m *Meta) { m.Exits = m.Layers + 1 },
		"stops of one":    stops(func(s Stops) Stops { return s[:1] }),
		"stops too short": stops(func(s Stops) Stops { s[1] = s[1][:1]; return s }),
		"seven of heads":  func(m *Meta) { m.Decides, m.Efforts = make([]Scale, 7), nil },
	} {
		changed := meta
		change(&changed)
		file, err := Retuned(shipped, changed)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(file); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// stops changes those of the first effort.
func stops(change func(Stops) Stops) func(*Meta) {
	return func(m *Meta) {
		m.Efforts = slices.Clone(m.Efforts)
		m.Efforts[0].Alone = change(slices.Clone(m.Efforts[0].Alone))
	}
}

func FuzzPieces(f *testing.F) {
	m := model(f)
	for _, g := range goldens(f) {
		f.Add(g.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, _, _ := passage(m.pieces, nil, "", text, "", MaxTokens)
		if len(ids) < 2 || len(ids) > MaxTokens || ids[0] != firstID || ids[len(ids)-1] != lastID {
			t.Fatalf("%q: %v", text, ids)
		}
		for _, id := range ids {
			if id < 0 || int(id) >= m.Meta.Pieces {
				t.Fatalf("%q: piece %d", text, id)
			}
		}
		if p := plain(text); utf8.ValidString(text) && !utf8.ValidString(p) {
			t.Fatalf("%q became %q", text, p)
		}
		m.Reads(text)
	})
}

// The short way to tell English, for ASCII, and the long one tell the same.
func FuzzReads(f *testing.F) {
	p := model(f).pieces.(*pieces)
	for _, s := range []string{"The school, and 3rd-party\x00 stuff\x0b yes", "été the", "a\x7fb the\x1fre", "x\u0085y", strings.Repeat("the", 30) + " is"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got, want := p.reads(text), p.readsAny(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	})
}

func FuzzLikeliestPieces(f *testing.F) {
	m := others(f)
	for _, g := range goldensOf(f, "testdata/others") {
		f.Add(g.Text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ids, _, _ := passage(m.pieces, nil, "", text, "", MaxTokens)
		if len(ids) < 2 || len(ids) > MaxTokens || ids[0] != unigramFirst || ids[len(ids)-1] != unigramLast {
			t.Fatalf("%q: %v", text, ids)
		}
		for i, id := range ids[1 : len(ids)-1] {
			if id < unigramUnknown || int(id) >= m.Meta.Pieces || id == unigramUnknown && ids[i] == unigramUnknown {
				t.Fatalf("%q: pieces %v", text, ids)
			}
		}
		m.Reads(text)
	})
}

func FuzzDecode(f *testing.F) {
	head := slices.Clone(shipped[:4096])
	f.Add(head)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, body []byte) {
		c := &cursor{rest: body}
		if s := c.text(1 << 16); c.err == nil && 4+len(s)+len(c.rest) != len(body) {
			t.Fatal("bytes are lost")
		}
		m := &Model{Meta: Meta{Layers: 1, Exits: 1, Width: HeadWidth, Inner: kernel.Column, Pieces: 8, Outputs: []string{"a"}}}
		c = &cursor{rest: body}
		c.sections(m)
		if c.err == nil && len(m.layers) != 1 {
			t.Fatal("no layer and no error")
		}
		_, _ = Decode(body)
	})
}

// BenchmarkEncoder reads a sentence of 22 pieces, one core.
func BenchmarkEncoder(b *testing.B) {
	m := model(b)
	const sentence = "Older employees simply cannot learn new software as fast as graduates do, so I would rather not hire them."
	ids, _, _ := passage(m.pieces, nil, "", sentence, "", MaxTokens)
	b.ReportMetric(float64(len(ids)), "pieces")
	b.ReportAllocs()
	for b.Loop() {
		read(m, sentence)
	}
}

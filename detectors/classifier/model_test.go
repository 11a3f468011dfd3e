package classifier

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/evenhand/evenhand/audit"
)

func tokensOf(text string) []token { return identity.fold(words(nil, text, 0, len(text)), nil) }

func TestTokens(t *testing.T) {
	describe := func(text string) string {
		var b strings.Builder
		for _, tok := range tokensOf(text) {
			fmt.Fprintf(&b, "%s", text[tok.start:tok.end])
			if tok.ground != 0 {
				fmt.Fprintf(&b, "=%s", groundOf(int(tok.ground)-1))
			}
			b.WriteByte('|')
		}
		return b.String()
	}
	for _, tc := range []struct{ text, want string }{
		{"They don't say: \"no\".", `They|don't|say|:|"|no|"|.|`},
		{"People over 50 can't code", "People over 50=age|can't|code|"},
		{"people over 51 can", "people|over|51|can|"},
		{"African-American women’s team", "African-American=race|women’s|team|"},
		{"„Höflich“ – ÉTÉ 日本", `„|Höflich|“|ÉTÉ|日本|`},
		{"\xff\xfe a\xe2\x82b", "a|b|"},
		{"'tis '", "tis|"},
	} {
		if got := describe(tc.text); got != tc.want {
			t.Errorf("%q\ngot  %s\nwant %s", tc.text, got, tc.want)
		}
	}
	if a, b := tokensOf("He’s 12"), tokensOf("HE'S 99"); a[0].word != b[0].word || a[1].word != b[1].word {
		t.Error("case, the kind of apostrophe and the value of a number make no difference")
	}
}

func TestNoTokenLeavesItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"a", "é", "women", " ", "'", "’", "\xff", "\xe2\x82", "5", ".", "日", "black", "-", "people"})).Draw(t, "text"), "")
		last := int32(0)
		for _, tok := range tokensOf(text) {
			if tok.start < last || tok.end <= tok.start || int(tok.end) > len(text) {
				t.Fatalf("token [%d,%d) after %d in %q", tok.start, tok.end, last, text)
			}
			last = tok.end
		}
	})
}

func TestLexicon(t *testing.T) {
	if lexiconFault != nil {
		t.Fatal(lexiconFault)
	}
	n := map[audit.Ground]int{}
	for i := range identity.terms {
		n[identity.terms[i].Ground]++
	}
	for _, g := range audit.Grounds {
		if n[g] < 20 {
			t.Errorf("%s has %d terms", g, n[g])
		}
	}
	for _, bad := range []string{"sex persons: a, a", "sex people: a", "x persons: a", "sex persons a", "sex persons: one two three four five six"} {
		if err := (&lexicon{table: map[uint32]int{}}).read("t", bad); err == nil {
			t.Errorf("%q is no lexicon", bad)
		}
	}
}

// Folding finds the longest term at every place, whatever the roles of its words let it skip.
func TestFoldAgreesWithPlainOne(t *testing.T) {
	var pieces []string
	for i := range identity.terms {
		pieces = append(pieces, identity.terms[i].Text)
		pieces = append(pieces, strings.Fields(identity.terms[i].Text)...)
	}
	pieces = append(pieces, "the", "of", "is", ",", ".", "train", "12", "-")
	rapid.Check(t, func(t *rapid.T) {
		comparePlainFold(t, strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "text"), " "))
	})
}

func comparePlainFold(t interface{ Fatalf(string, ...any) }, text string) {
	ts := words(nil, text, 0, len(text))
	var want []token
	for i := 0; i < len(ts); {
		var longest *Term
		n := 1
		for _, term := range termsByFirst[ts[i].raw] {
			if len(term.hashes) >= n && stands(term, ts[i:]) {
				longest, n = term, len(term.hashes)
			}
		}
		if longest != nil {
			want = append(want, classToken(longest, ts[i:i+n]))
		} else {
			want = append(want, ts[i])
		}
		i += n
	}
	if got := identity.fold(ts, nil); !slices.Equal(got, want) {
		t.Fatalf("%q:\n got %+v\nwant %+v", text, got, want)
	}
}

var termsByFirst = func() map[uint32][]*Term {
	m := map[uint32][]*Term{}
	for i := range identity.terms {
		t := &identity.terms[i]
		m[t.hashes[0]] = append(m[t.hashes[0]], t)
	}
	return m
}()

func stands(term *Term, ts []token) bool {
	for k, h := range term.hashes {
		if k == len(ts) || ts[k].mark != 0 || ts[k].raw != h {
			return false
		}
	}
	return true
}

func TestSwap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		got, to, ok := Swap("Women are welcome, and a woman leads. Muslims too.", rng.IntN)
		if !ok || to == audit.Sex || strings.HasPrefix(got, "Women ") || !strings.Contains(got, "Muslims too.") {
			t.Fatalf("%q to %s", got, to)
		}
	}
	if got, _, ok := Swap("The train is late.", rng.IntN); ok || got != "The train is late." {
		t.Error(got)
	}
}

// The model sees the class of an identity term, not the term: what it says does not hang on the group.
func TestGroupsAreAlike(t *testing.T) {
	m := random(1)
	for _, pair := range [][2]string{{"Women cannot drive.", "Muslims cannot drive."}, {"I met a gay man, he sings.", "I met a wheelchair user, he sings."}} {
		a, b := tokensOf(pair[0]), tokensOf(pair[1])
		var s, u scratch
		m.look(&s, a, m.first(gateFeatures(nil, a), len(a)))
		m.look(&u, b, m.first(gateFeatures(nil, b), len(b)))
		if s.heads != u.heads {
			t.Errorf("%v: %v and %v", pair, s.heads, u.heads)
		}
	}
}

// random makes weights of about the size that training gives.
func randomWeights(seed uint64) *weights {
	rng := rand.New(rand.NewPCG(seed, 9))
	w := newWeights(nil)
	for _, part := range []struct {
		w     []float32
		scale float64
	}{{w.gate, 1}, {w.embed, 0.2}, {w.conv1, 0.15}, {w.conv2, 0.12}, {w.ground, 1}, {w.bias1[:], 0.05}, {w.bias2[:], 0.05}} {
		for i := range part.w {
			part.w[i] = float32(rng.NormFloat64() * part.scale)
		}
	}
	for h := range w.out {
		for c := range w.out[h] {
			w.out[h][c] = float32(rng.NormFloat64() * 0.3)
		}
		w.skip[h] = 0.5
	}
	return w
}

func random(seed uint64) *Model {
	m := quantise(randomWeights(seed))
	m.Meta = Meta{Name: "random", Gate: -10, Ground: 0.5}
	for _, h := range Heads() {
		m.Meta.Heads = append(m.Meta.Heads, Tuning{Name: h.String(), A: 1, Threshold: 0.5})
	}
	return m
}

// Rounding to bytes moves the logits by a small part of what they differ by from text to text.
func TestQuantisingMovesLittle(t *testing.T) {
	w := randomWeights(3)
	m := quantise(w)
	n := &network{w: w}
	worst, sum, square, count := 0.0, 0.0, 0.0, 0.0
	var s scratch
	for line := range strings.SplitSeq(strings.TrimSpace(sentences), "\n") {
		ts := tokensOf(line)
		n.forward(ts, 0)
		m.look(&s, ts, 0)
		for h, z := range n.s.heads {
			worst = max(worst, math.Abs(float64(z-s.heads[h])))
			sum, square, count = sum+float64(z), square+float64(z)*float64(z), count+1
		}
	}
	spread := math.Sqrt(square/count - sum*sum/count/count)
	if worst > 0.1*spread {
		t.Errorf("a logit moved by %v where they spread by %v", worst, spread)
	}
}

const sentences = `
Women are too emotional to lead a team.
The train to the coast leaves at nine.
He said that "immigrants are criminals" and was asked to leave.
As a deaf person, I like the new captions, and I use them daily.
People over 50 should not be hired for technical jobs.
No.
Please send me the report, the invoice and the two photographs that we talked about on Tuesday; thanks.
`

func TestFileRoundTrip(t *testing.T) {
	m := random(2)
	file, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	again, err := got.Encode()
	if err != nil || !bytes.Equal(file, again) {
		t.Fatalf("another file after decoding (%v)", err)
	}
	var a, b scratch
	ts := tokensOf("Women cannot drive.")
	m.look(&a, ts, 1)
	got.look(&b, ts, 1)
	if a.heads != b.heads || m.grounds(ts) != got.grounds(ts) || got.Meta.Version == "" {
		t.Error("the decoded model says something else")
	}
	for name, bad := range map[string][]byte{"empty": nil, "cut": file[:len(file)-1], "longer": append(bytes.Clone(file), 0), "damaged": flip(file, len(file)/2)} {
		if _, err := Decode(bad); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.Meta.Heads[0].A = math.Inf(1)
	if err := m.validate(); err == nil {
		t.Error("a slope that is not finite")
	}
}

func flip(b []byte, i int) []byte {
	out := bytes.Clone(b)
	out[i] ^= 1
	return out
}

package classifier

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

func vectorsFile(words []string, size int, numbers []float32) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %d %d\n%s\n", vectorsMagic, len(words), size, strings.Join(words, "\n"))
	_ = binary.Write(&b, binary.LittleEndian, numbers)
	return b.Bytes()
}

func TestReadVectors(t *testing.T) {
	file := vectorsFile([]string{"weak", "two words", "Weak", "calm"}, 2, []float32{1, 2, 3, 4, 5, 6, 7, 8})
	v, err := ReadVectors(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if v.Words() != 2 || v.words[0] >= v.words[1] {
		t.Fatalf("%d words, want weak and calm in order of their hashes", v.Words())
	}
	for i, w := range v.words {
		if want := map[uint32]float32{tokensOf("weak")[0].word: 1, tokensOf("calm")[0].word: 7}[w]; v.of(i)[0] != want {
			t.Errorf("word %d has %v, want %v first", i, v.of(i), want)
		}
	}
	for name, bad := range map[string][]byte{
		"empty": nil, "another file": []byte(magic), "cut": file[:len(file)-1], "too long": []byte(vectorsMagic + " 99999999 2\n"),
		"few words": []byte(vectorsMagic + " 2 2\nweak\n"), "not finite": vectorsFile([]string{"a"}, 1, []float32{float32(math.NaN())}),
	} {
		if _, err := ReadVectors(bytes.NewReader(bad)); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is learnt of a word holds for one that was never seen and means the same, before and after the file.
func TestVectorsTellOfWordsThatWereNotSeen(t *testing.T) {
	v, err := ReadVectors(bytes.NewReader(vectorsFile([]string{"weak", "frail", "calm", "serene"}, 2, []float32{4, 0, 4, 0, 0, 4, 0, 4})))
	if err != nil {
		t.Fatal(err)
	}
	var examples []Example
	for i := range 400 {
		e := Example{Sentences: []string{"They are calm today."}, Weight: 1}
		if i%2 == 0 {
			e.Sentences, e.Target[Bias] = []string{"They are weak today."}, 1
		}
		examples = append(examples, e)
	}
	file, err := Fit(examples, FitOptions{Seed: 1, Epochs: 6, Vectors: v}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	bias := func(text string) float32 {
		var s scratch
		m.look(&s, tokensOf(text), 0)
		return s.heads[Bias]
	}
	if frail, serene := bias("They are frail today."), bias("They are serene today."); frail < 1 || serene > -1 {
		t.Errorf("frail %.2f, serene %.2f", frail, serene)
	}
}

// So do the grounds: also where the only group that is named is not what it is about.
func TestVectorsTellGrounds(t *testing.T) {
	v, err := ReadVectors(bytes.NewReader(vectorsFile([]string{"docker", "miner", "frail", "feeble"}, 2, []float32{4, 0, 4, 0, 0, 4, 0, 4})))
	if err != nil {
		t.Fatal(err)
	}
	var examples []Example
	for i := range 600 {
		e := Example{Sentences: []string{"A docker belongs outside."}, Weight: 1, Target: [NumHeads]float32{1}, Grounds: []audit.Ground{audit.SocialOrigin}}
		switch i % 3 {
		case 1:
			e.Sentences, e.Grounds = []string{"A frail one belongs outside."}, []audit.Ground{audit.Disability}
		case 2:
			e.Sentences, e.Grounds = []string{"A woman belongs outside."}, []audit.Ground{audit.Sex}
		}
		examples = append(examples, e)
	}
	file, err := Fit(examples, FitOptions{Seed: 1, Epochs: 1, Vectors: v}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]audit.Ground{
		"A miner belongs outside.": audit.SocialOrigin, "A feeble one belongs outside.": audit.Disability, "A woman belongs outside.": audit.Sex,
	} {
		ts := tokensOf(text)
		if got := m.namedGrounds(ts); got[0] != want {
			t.Errorf("%s: %v of %.2f", text, got, m.grounds(ts))
		}
		sum := 0.0
		for _, p := range m.grounds(ts) {
			sum += p
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Errorf("%s: the grounds' probabilities sum to %v", text, sum)
		}
	}
}

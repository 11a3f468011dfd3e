package classifier

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/modelfile"
)

// Limits of a file of vectors: a model with more words would be over MaxFile.
const (
	vectorsMagic = "EVENHAND-VECTORS/1"
	maxWords     = 1 << 16
	maxVector    = 1024
)

// Vectors are what a larger model knows of words, each without any text around it: words of like meaning have like
// vectors. With them a network understands words that it has hardly seen in training.
type Vectors struct {
	words []uint32 // hashes, ascending
	size  int      // numbers of a vector
	v     []float32
}

// ReadVectors reads a file that tools/train/vectors.py writes: a line with the magic, the number of words and the size of
// a vector; the words, one a line; the vectors as float32, little endian. Whatever is wrong with it is an error of KindInvalid.
func ReadVectors(r io.Reader) (*Vectors, error) {
	v, err := readVectors(bufio.NewReader(r))
	if err != nil {
		return nil, audit.E("classifier: read vectors", audit.KindInvalid, err)
	}
	return v, nil
}

func readVectors(r *bufio.Reader) (*Vectors, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("first line: %w", err)
	}
	n, size := 0, 0
	if _, err := fmt.Sscanf(line, vectorsMagic+" %d %d\n", &n, &size); err != nil || n < 1 || n > maxWords || size < 1 || size > maxVector {
		return nil, fmt.Errorf("want a first line %q with up to %d words of up to %d numbers", vectorsMagic+" WORDS NUMBERS", maxWords, maxVector)
	}
	at := map[uint32]int{} // a word's place in the file; of two with one hash the first
	v := &Vectors{size: size}
	for i := range n {
		word, err := r.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("word %d: %w", i, err)
		}
		word = strings.TrimSuffix(word, "\n")
		ts := words(nil, word, 0, len(word))
		if len(ts) != 1 {
			continue // no word to the classifier
		}
		if _, known := at[ts[0].word]; !known {
			at[ts[0].word] = i
			v.words = append(v.words, ts[0].word)
		}
	}
	all := make([]float32, n*size)
	if err := binary.Read(r, binary.LittleEndian, all); err != nil {
		return nil, fmt.Errorf("numbers: %w", err)
	}
	for _, f := range all {
		if !modelfile.Finite(float64(f)) {
			return nil, fmt.Errorf("a number is %v", f)
		}
	}
	slices.Sort(v.words)
	for _, w := range v.words {
		v.v = append(v.v, all[at[w]*size:(at[w]+1)*size]...)
	}
	return v, nil
}

// of gives the vector of the i-th word.
func (v *Vectors) of(i int) []float32 { return v.v[i*v.size : (i+1)*v.size] }

// Words is the number of words with a vector.
func (v *Vectors) Words() int { return len(v.words) }

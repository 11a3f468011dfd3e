package pii

import (
	"slices"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// shortest is how many bytes a value has that is masked wherever it stands, found there or not.
const shortest = 6

// known are the values that some text shows to be personal: a number that one text calls a card's stands in another without
// the word. Looking for them takes time with the text's length, however many they are. The zero value is ready.
type known struct {
	entities map[string]string        // by value, that of the first finding
	sizes    map[[shortest]byte][]int // of values, by how they begin, the longest first
	begins   [256]bool                // the first byte of some value
}

// learn takes the values that findings say of a text.
func (k *known) learn(text string, side audit.Side, fs []audit.Finding) {
	for _, p := range partsOf(text, side, fs) {
		if len(p.value) < shortest || k.entities[p.value] != "" {
			continue
		}
		if k.entities == nil {
			k.entities, k.sizes = map[string]string{}, map[[shortest]byte][]int{}
		}
		k.entities[p.value] = p.finding.Entity
		head := headOf(p.value)
		if at, ok := slices.BinarySearchFunc(k.sizes[head], len(p.value), func(a, b int) int { return b - a }); !ok {
			k.sizes[head] = slices.Insert(k.sizes[head], at, len(p.value))
		}
		k.begins[p.value[0]] = true
	}
}

// in finds the values in a text, of those that overlap the first and longest.
func (k *known) in(text string, side audit.Side) (fs []audit.Finding) {
	if len(k.entities) == 0 {
		return nil
	}
	read, n := 0, uint32(0) // code points up to a byte
	for at := 0; at+shortest <= len(text); at++ {
		if !k.begins[text[at]] {
			continue
		}
		value := k.at(text[at:])
		if value == "" {
			continue
		}
		n += uint32(utf8.RuneCountInString(text[read:at]))
		end := n + uint32(utf8.RuneCountInString(value))
		fs = append(fs, audit.Finding{Kind: "pii.known", Entity: k.entities[value], Side: side, Span: audit.Span{Start: n, End: end}})
		read, n = at+len(value), end
		at = read - 1
	}
	return fs
}

// at gives the longest value that a text begins with.
func (k *known) at(text string) string {
	for _, size := range k.sizes[headOf(text)] {
		if size <= len(text) && k.entities[text[:size]] != "" {
			return text[:size]
		}
	}
	return ""
}

func headOf(text string) (head [shortest]byte) {
	copy(head[:], text)
	return head
}

package classifier

import (
	"hash/maphash"
	"sync"

	"github.com/evenhand/evenhand/detectors/classifier/encoder"
)

// memory keeps what encoders said of the passages that were read last, so that what comes again is not read again: canned answers and boilerplate, an
// answer that was checked in line and is audited then, the parts of a stream that is looked at in windows. All that an answer depends on is in the key, so
// it is the answer that reading again would give; a key is two hashes under seeds of the process's own, and no text is kept.
type memory struct {
	seeds [2]maphash.Seed
	sets  []set
}

// set is where answers are that share a place, that which was used last first.
type set struct {
	mu      sync.Mutex
	answers [places]answer
}

// places is how many a set has, as caches of processors do (set-associative).
const places = 4

type key [2]uint64

type answer struct {
	key  key
	said encoder.Logits
}

// question is what an answer depends on beside the text. The slices of stops are those of the models, which never change.
type question struct {
	by    *encoder.Model
	stops *[]encoder.Stop
	prior encoder.Prior
}

// newMemory has room for about so many answers.
func newMemory(answers int) *memory {
	return &memory{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, make([]set, max(1, answers/places))}
}

func (m *memory) key(before, part, after string, q question) (k key) {
	for i := range k {
		var h maphash.Hash
		h.SetSeed(m.seeds[i])
		for _, s := range [...]string{before, part, after} {
			maphash.WriteComparable(&h, len(s))
			_, _ = h.WriteString(s)
		}
		maphash.WriteComparable(&h, q)
		k[i] = h.Sum64()
	}
	return k
}

func (m *memory) set(k key) *set { return &m.sets[k[0]%uint64(len(m.sets))] }

// get gives what was said.
func (m *memory) get(k key) (said encoder.Logits, ok bool) {
	s := m.set(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.answers {
		if a := s.answers[i]; a.key == k {
			copy(s.answers[1:i+1], s.answers[:i])
			s.answers[0] = a
			return a.said, true
		}
	}
	return said, false
}

// put forgets the answer of the set that was used the longest ago.
func (m *memory) put(k key, said *encoder.Logits) {
	s := m.set(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	copy(s.answers[1:], s.answers[:])
	s.answers[0] = answer{k, *said}
}

// Remember has what the encoders said of that many sentences and passages kept, 104 bytes each, instead of reading them again when they come again. It is for
// before the detector is used.
func (d *Detector) Remember(answers int) {
	if d.memory = nil; answers > 0 {
		d.memory = newMemory(answers)
	}
}

// RememberWith has the detector keep what was said where another keeps it: neither reads again what the other has read.
func (d *Detector) RememberWith(other *Detector) { d.memory = other.memory }

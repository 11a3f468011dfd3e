package door

import (
	"hash/maphash"
	"sync"
)

// heard knows what LiteLLM told last of its calls' answers. Its contract says neither that an answer is a stream's nor that one is at its
// end, so what goes on with a text that was told before is taken for a stream's. What is forgotten, or told to another process, is taken for
// a whole.
type heard struct {
	mu          sync.Mutex
	seed        maphash.Seed
	now, before map[string]told // by call; before is what now was until it was full
}

// told is what one call's answer was, without its words.
type told struct {
	texts  []digest
	stream bool
}

type digest struct {
	size int
	sum  uint64
}

const heardCalls = 8192 // in each of the two

func newHeard() *heard {
	return &heard{seed: maphash.MakeSeed(), now: map[string]told{}}
}

// goesOn takes an answer of a call and tells whether it belongs to a stream by now.
func (h *heard) goesOn(call string, texts []string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	last, known := h.now[call]
	if !known {
		last, known = h.before[call]
	}
	this := told{}
	for _, t := range texts {
		this.texts = append(this.texts, digest{len(t), maphash.String(h.seed, t)})
	}
	if known && h.begins(last, texts) {
		this.stream = last.stream || len(texts) > len(last.texts)
		for i, d := range last.texts {
			this.stream = this.stream || len(texts[i]) > d.size
		}
	}
	if len(h.now) >= heardCalls {
		h.before, h.now = h.now, map[string]told{}
	}
	h.now[call] = this
	return this.stream
}

// begins tells whether each text begins with what it was.
func (h *heard) begins(last told, texts []string) bool {
	if len(last.texts) > len(texts) {
		return false
	}
	for i, d := range last.texts {
		if len(texts[i]) < d.size || maphash.String(h.seed, texts[i][:d.size]) != d.sum {
			return false
		}
	}
	return true
}

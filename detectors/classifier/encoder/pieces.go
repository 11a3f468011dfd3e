package encoder

import "slices"

// vocabulary cuts texts into pieces of words.
type vocabulary interface {
	// append adds a text's ids; no more words once there are limit of them.
	append(ids []int32, text string, limit int) []int32
	// marks are the ids of a text's beginning and end.
	marks() (first, last int32)
	// reads tells whether a text is made of what the vocabulary holds.
	reads(text string) bool
}

// passage appends the ids of a sentence and of what stands before and after it, those of beginning and end around them, at most limit in all;
// the sentence's are from..to. Of a passage that is too long the first of what stands before are left out, then the last.
func passage(v vocabulary, ids []int32, before, sentence, after string, limit int) (all []int32, from, to int) {
	first, end := v.marks()
	last := limit - 1 // where the mark of the end stands at the latest
	ids = v.append(append(ids, first), before, len(before))
	from = len(ids)
	ids = v.append(ids, sentence, last)
	if over := min(from-1, len(ids)-last); over > 0 {
		ids = slices.Delete(ids, 1, 1+over)
		from -= over
	}
	to = min(len(ids), last)
	ids = v.append(ids, after, last)
	return append(ids[:min(len(ids), last)], end), from, to
}

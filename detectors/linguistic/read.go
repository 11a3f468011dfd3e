package linguistic

import (
	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
)

// told is a response as the measures read it: sentences that mention groups which are compared.
type told struct {
	sentences []sentence
	groups    [][]bool // by dimension and group: mentioned somewhere; nil where fewer than two are
	roles     int      // number of roles and one, that of none
}

// sentence is a sentence with its words and mentions.
type sentence struct {
	start, end int // bytes of the original text
	words      []word
	mentions   []mention
	shouts     int // exclamation marks
}

// word is a word that the lexicon may know.
type word struct {
	start, end int
	entry      entry
}

// read cuts the response into the sentences that mention a group and looks up their words.
func (d *Detector) read(in *detectors.Input, s seen) *told {
	t := &told{groups: make([][]bool, len(d.groups.count)), roles: len(d.words.roles)}
	for i, n := range d.groups.count {
		if s.compared[i] {
			t.groups[i] = make([]bool, n)
		}
	}
	text, normal := in.Interaction.Text(audit.Output), in.Normal(audit.Output)
	rest := s.mentions
	for _, span := range in.Sentences(audit.Output) {
		if len(rest) == 0 {
			break
		}
		from, to := normal.Original(span.Start, span.End)
		n := 0
		for n < len(rest) && rest[n].start < to {
			t.groups[rest[n].dimension][rest[n].number] = true
			n++
		}
		if n == 0 {
			continue
		}
		x := sentence{start: from, end: to, mentions: rest[:n]}
		x.words, x.shouts = d.words.look(text[from:to], from)
		t.sentences, rest = append(t.sentences, x), rest[n:]
	}
	return t
}

package audit

import "unicode/utf8"

// stride is how many code points lie between two marks.
const stride = 256

// Points knows where the code points of a text are, so that many spans of one long text do not each count from its start. It is not safe
// for concurrent use.
type Points struct {
	text  string
	marks []int // byte offset of every stride-th code point; nil until something is asked
}

// PointsOf gives the code points of a text; nothing is counted before something is asked.
func PointsOf(text string) *Points { return &Points{text: text} }

func (p *Points) marked() []int {
	if p.marks == nil {
		p.marks = append(make([]int, 0, len(p.text)/stride+1), 0)
		for i, n := 0, 0; i < len(p.text); n++ {
			if n > 0 && n%stride == 0 {
				p.marks = append(p.marks, i)
			}
			_, size := utf8.DecodeRuneInString(p.text[i:])
			i += size
		}
	}
	return p.marks
}

// byteAt gives where the n-th code point begins; the text's length where there are fewer.
func (p *Points) byteAt(n uint32) int {
	marks := p.marked()
	m := int(n) / stride
	if m >= len(marks) {
		return len(p.text)
	}
	at := marks[m]
	for left := int(n) % stride; left > 0 && at < len(p.text); left-- {
		_, size := utf8.DecodeRuneInString(p.text[at:])
		at += size
	}
	return at
}

// pointAt gives how many code points lie before a byte.
func (p *Points) pointAt(offset int) uint32 {
	marks := p.marked()
	low, high := 0, len(marks) // the last mark that is not behind offset lies in [low, high)
	for high-low > 1 {
		if mid := (low + high) / 2; marks[mid] <= offset {
			low = mid
		} else {
			high = mid
		}
	}
	return uint32(low*stride + utf8.RuneCountInString(p.text[marks[low]:offset]))
}

// Slice is [Span.Slice] of the text.
func (p *Points) Slice(s Span) string {
	from, to := p.byteAt(s.Start), p.byteAt(s.End)
	if from > to {
		return ""
	}
	return p.text[from:to]
}

// Span is [SpanOf] the text.
func (p *Points) Span(startByte, endByte int) Span {
	return Span{p.pointAt(startByte), p.pointAt(endByte)}
}

// Evidence cuts what findings stand on out of the texts of an interaction.
type Evidence [2]*Points

// Evidence gives the evidence of findings in the interaction as it is now.
func (in *Interaction) Evidence() Evidence {
	return Evidence{PointsOf(in.Text(Output)), PointsOf(in.Text(Input))}
}

// At is what stands at a span of a side.
func (e Evidence) At(side Side, s Span) string {
	if side == Input {
		return e[1].Slice(s)
	}
	return e[0].Slice(s)
}

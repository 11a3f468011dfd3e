package gateway

import (
	"context"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// settled is how many bytes other texts must have gone on until the end of one may go on, too: a model that has turned to its answer does not add
// to what it thought.
const settled = 160

// veil masks a stream, or puts values back into it, event by event. Events wait in their order until what they say can no longer read
// otherwise: a number may be half a number yet, and half a placeholder is none.
type veil struct {
	x        *exchange
	queue    []veiled
	bytes    int64 // of the queue
	channels map[string]*channel
	tools    map[string]*tool // calls under way, without what they ask for
	order    []*channel       // that may change yet
	size     int              // bytes of text
	looked   int              // of them when they were last looked at
}

// channel is a text that comes in pieces.
type channel struct {
	words   words
	whole   bool // JSON, which is looked at when it is whole
	once    bool // it came in one piece
	closed  bool
	since   int // bytes that other texts have got since this one's last piece
	changes []change
	limit   int // bytes that may go on
}

// veiled is an event that waits.
type veiled struct {
	ev     event
	pieces []piecemeal
}

// piecemeal is a string of an event as a part of a text.
type piecemeal struct {
	spot
	of        *channel // nil of tokens
	start     int      // bytes of the text
	end       int
	low, high bool // it begins, or ends, with half a character, of which the other half is in another event
}

// newVeil gives what a stream goes through; nil where it passes as it came.
func newVeil(x *exchange) *veil {
	if !x.opts.masks(audit.Output) && len(x.mask.values) == 0 {
		return nil
	}
	return &veil{x: x, channels: map[string]*channel{}, tools: map[string]*tool{}}
}

// pass takes events and gives what may go on; last says that no more come.
func (v *veil) pass(ctx context.Context, evs []event, last bool) ([]byte, *fault) {
	if v.x.mask.failed[sideIndex(audit.Output)] {
		return rawOf(evs), nil
	}
	ends := last
	for _, ev := range evs {
		v.bytes += int64(len(ev.raw))
		ends = v.take(ev) || ends
	}
	masks := v.x.opts.masks(audit.Output)
	why := ""
	switch {
	case !masks:
	case v.x.answer.opaque:
		why = v.x.unreadable()
	case v.bytes > v.x.g.cfg.ResponseBytes && !last:
		why = v.x.g.long()
	}
	if why == "" && (ends || !masks || v.size-v.looked >= max(v.x.g.cfg.WindowBytes, v.size/16)) && !v.look(ctx, last) {
		if ctx.Err() != nil {
			return nil, gone
		}
		why = "nobody could look at the response"
	}
	if why != "" {
		if f := v.x.unmasked(audit.Output, why); f != nil {
			return nil, f
		}
		var out []byte
		for _, q := range v.queue {
			out = append(out, q.ev.raw...)
		}
		v.queue = nil
		return out, nil
	}
	n := 0
	var out []byte
	for ; n < len(v.queue) && v.queue[n].ready(); n++ {
		v.bytes -= int64(len(v.queue[n].ev.raw))
		out = append(out, v.queue[n].unveiled()...)
	}
	v.queue = v.queue[n:]
	return out, nil
}

func rawOf(evs []event) (out []byte) {
	for _, ev := range evs {
		out = append(out, ev.raw...)
	}
	return out
}

// take puts an event behind those that wait, and tells whether it ends a text.
func (v *veil) take(ev event) (ends bool) {
	q := veiled{ev: ev}
	defer func() { v.queue = append(v.queue, q) }()
	if len(ev.data) == 0 || ev.done() || !gjson.ValidBytes(ev.data) {
		return false
	}
	data := gjson.ParseBytes(ev.data)
	if quiet(data.Get("type").Str) {
		return false
	}
	var last gjson.Result
	walk(ev.data, func(path []step, s spot) {
		if prefix, call := v.x.kind.called(data, path); prefix != "" && call.Index != last.Index {
			last = call
			ends = v.call(prefix, call) || ends
		}
		if !v.x.kind.told(path, true) {
			return
		}
		p := piecemeal{spot: s}
		if s.tokens {
			if v.x.opts.masks(audit.Output) {
				q.pieces = append(q.pieces, p)
			}
			return
		}
		text := gjson.ParseBytes(ev.data[s.from:s.to])
		if text.Str == "" || encoded(text.Str) {
			return
		}
		v.add(&p, v.channel(data, path), wordsOf(text))
		q.pieces = append(q.pieces, p)
	})
	for _, prefix := range v.x.kind.ends(data) {
		for key, c := range v.channels {
			if strings.HasPrefix(key, prefix) {
				c.closed, ends = true, true
			}
		}
	}
	return ends
}

// call takes note of a piece of a call of a tool; where it is of another call than the last one of its index, the texts of that are at their end.
func (v *veil) call(prefix string, call gjson.Result) (ends bool) {
	t := v.tools[prefix]
	if t == nil {
		t = &tool{}
		v.tools[prefix] = t
	}
	id, name, args := callPiece(call)
	if t.Over(id, name, args) {
		*t = tool{}
		for key, c := range v.channels {
			if strings.HasPrefix(key, prefix) {
				c.closed, ends = true, true
				delete(v.channels, key)
			}
		}
	}
	t.Note(id, name, args)
	return ends
}

// channel gives the text that a string of an event is a piece of.
func (v *veil) channel(data gjson.Result, path []step) *channel {
	key, whole := v.x.kind.channel(data, path)
	c := v.channels[key]
	if c == nil {
		c = &channel{once: key == "", closed: key == "", whole: whole}
		if !c.once {
			v.channels[key] = c
		}
		v.order = append(v.order, c)
	}
	return c
}

// add adds a piece to its text.
func (v *veil) add(p *piecemeal, c *channel, text string) {
	p.of, p.start = c, c.words.said.Len()
	p.low = c.words.half != 0 && halfAt(text) >= 0xdc00
	c.words.add(text)
	p.high, p.end = c.words.half != 0, c.words.said.Len()
	v.size += p.end - p.start
	for _, o := range v.order {
		o.since += p.end - p.start
	}
	c.since, c.closed = 0, c.once
	if !slices.Contains(v.order, c) { // it was at its end, and goes on
		v.order = append(v.order, c)
	}
}

// look finds what is to be changed in the texts, and how far they may go on; false where nobody could look.
func (v *veil) look(ctx context.Context, last bool) bool {
	v.looked = v.size
	texts := make([]string, len(v.order))
	var once []string // the end of a stream tells all of it again
	for i, c := range v.order {
		texts[i] = c.words.said.String()
		if !slices.Contains(once, texts[i]) {
			once = append(once, texts[i])
		}
	}
	masked := make([]pii.Masked, len(once))
	if v.x.opts.masks(audit.Output) {
		var err error
		if masked, err = v.x.g.Mask.MaskMore(ctx, v.x.mask.memory.Draft(), once); err != nil {
			return false
		}
	}
	for i, c := range v.order {
		v.settle(c, texts[i], masked[slices.Index(once, texts[i])], last)
	}
	v.order = slices.DeleteFunc(v.order, func(c *channel) bool { return c.closed && c.limit == c.words.said.Len() })
	return true
}

// settle notes what is to be changed in a text.
func (v *veil) settle(c *channel, text string, m pii.Masked, last bool) {
	limit := len(text)
	switch masks := v.x.opts.masks(audit.Output); {
	case last || c.closed:
	case c.whole:
		limit = 0
	case c.since >= settled:
	default:
		limit = v.x.half(text)
		if masks {
			limit = min(limit, stable(text, m))
		}
	}
	hidden := changesOf(text, m)
	c.changes = v.x.putBack(text, hidden)
	for _, h := range hidden { // one that is cut by the limit waits for its end
		if h.from < limit && h.to > limit {
			limit = h.from
		}
	}
	limit = max(limit, c.limit)
	for _, h := range hidden {
		if h.to <= limit {
			v.x.uses(audit.Output, h.with)
			v.x.mask.memory.Keep(text[h.from:h.to], strings.Trim(h.with, `"\'`))
		}
	}
	c.limit = limit
}

// stable gives how many bytes of a text read as they do whatever comes behind it.
func stable(text string, m pii.Masked) int {
	at := uint32(utf8.RuneCountInString(m.Text) - m.Open())
	r := runes{text: text}
	return r.byte(m.Original(audit.Span{Start: at, End: at}).Start)
}

// ready tells whether an event may go on.
func (q *veiled) ready() bool {
	for _, p := range q.pieces {
		if p.of != nil && p.end > p.of.limit {
			return false
		}
	}
	return true
}

// unveiled gives the event as it goes on: what is not changed in it stays byte for byte.
func (q *veiled) unveiled() []byte {
	var edits []change
	for _, p := range q.pieces {
		if p.of == nil {
			edits = append(edits, untold(q.ev.data, p.spot))
		} else if with, ok := p.text(q.ev.data[p.from:p.to]); ok {
			edits = append(edits, change{p.from, p.to, with})
		}
	}
	if len(edits) > 0 {
		q.ev.replace(changed(q.ev.data, edits))
	}
	return q.ev.raw
}

// text gives the string of JSON that stands in the place of a piece; false where it stays. What is put in the place of a value stands in the
// piece in which the value begins.
func (p *piecemeal) text(raw []byte) (string, bool) {
	all := p.of.changes
	at := sort.Search(len(all), func(i int) bool { return all[i].to > p.start })
	if at == len(all) || all[at].from >= p.end {
		return "", false
	}
	text := p.of.words.said.String()
	var out strings.Builder
	done := p.start
	if p.low { // the rest of a character that another event begins
		_, size := utf8.DecodeRuneInString(text[done:])
		done += size
	}
	for _, c := range all[at:] {
		if c.from >= p.end {
			break
		}
		if c.from >= p.start {
			out.WriteString(text[done:max(done, c.from)])
			out.WriteString(c.with)
		}
		done = max(done, min(c.to, p.end))
	}
	out.WriteString(text[done:max(done, p.end)])
	with := string(quoted(out.String()))
	if p.low {
		with = `"` + string(raw[1:7]) + with[1:]
	}
	if p.high {
		with = with[:len(with)-1] + string(raw[len(raw)-7:])
	}
	return with, true
}

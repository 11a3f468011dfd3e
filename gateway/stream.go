package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
)

// flow is a stream under way: what came and may not go on yet.
type flow struct {
	x       *exchange
	res     *http.Response
	mode    string
	pending []event
	marked  int    // of pending: the last event that can carry our report; -1 for none
	path    string // of the report in it
	over    bool   // the model is at its end, of one answer at least, and has said nothing since
	cut     int    // of pending: how many end with a sentence
	cutAt   int    // bytes of text up to there
	out     int    // bytes of text that went on
	held    int64  // bytes of pending
	veil    *veil  // nil where nothing is masked or put back
	due     int    // of pending: how many may go, and wait for those that came with them
}

// Events that came together go on together: a system call each would be most of what a fast stream costs.
const (
	readAhead = 16       // events
	together  = 16 << 10 // bytes
)

// piece is what the reading goroutine hands on.
type piece struct {
	ev  event
	err error
}

// sealed passes a compressed stream on, byte for byte, where nothing might be stopped: it cannot be judged, and what we would
// write into it would spoil it.
func (x *exchange) sealed(ctx context.Context, res *http.Response) *fault {
	x.answer.opaque, x.unread = true, packed(res.Header)
	if x.opts.masks(audit.Output) {
		if f := x.unmasked(audit.Output, x.unreadable()); f != nil {
			return f
		}
	}
	if f := x.settle(ctx, audit.Output, nil); f != nil {
		return f
	}
	if x.committed { // while a person was waited for: its caller was promised plain events
		x.failure = x.unreadable()
		return &fault{status: http.StatusBadGateway, kind: kindUpstream, code: "evenhand_upstream_broken", say: x.unreadable()}
	}
	x.failure = "the provider's answer broke off"
	x.begin(res.Header, res.StatusCode)
	for part := make([]byte, 16<<10); ; {
		n, err := res.Body.Read(part)
		x.told()
		if errors.Is(err, io.EOF) {
			x.status, x.failure = "success", ""
			x.ends()
		}
		if x.write(part[:n]); err != nil {
			return nil // a fault would be told in plain words behind the packed ones
		}
	}
}

// stream judges a stream and passes it on as its mode allows. asking ends when the provider's time is over.
func (x *exchange) stream(ctx, asking context.Context, res *http.Response) *fault {
	if packed(res.Header) != "" {
		return x.sealed(ctx, res)
	}
	f := &flow{x: x, res: res, mode: x.opts.stream, marked: -1, veil: newVeil(x)}
	if !x.opts.looks(guard.Response) {
		f.mode = StreamPass
	}
	x.undecided = f.mode != StreamHold && x.opts.looks(guard.Response)
	x.failure = "the provider's answer broke off"
	reading, stop := context.WithCancel(asking)
	pieces := read(reading, res.Body, x.g.cfg.ResponseBytes)
	defer func() { // the reader ends with its body
		stop()
		_ = res.Body.Close()
		for range pieces { //nolint:revive // until it is closed
		}
	}()
	tick := time.NewTicker(x.g.cfg.KeepAlive)
	defer tick.Stop()
	alive := x.alive(res.Header)
	for {
		select {
		case p, more := <-pieces:
			if !more { // ctx has ended
				p.err = context.Cause(reading)
			}
			if p.err != nil {
				x.told()
				return f.end(ctx, asking, p.err, alive)
			}
			if fault := f.take(ctx, p.ev, len(pieces) > 0, alive); fault != nil {
				return fault
			}
			if p.ev.done() {
				x.told()
				fault := f.end(ctx, asking, io.EOF, alive)
				drain(pieces)
				return fault
			}
		case <-tick.C:
			if f.mode != StreamPass && alive != nil {
				alive()
			}
		}
	}
}

// read reads events until the stream or ctx ends; the last piece is an error.
func read(ctx context.Context, body io.Reader, most int64) <-chan piece {
	out := make(chan piece, readAhead)
	go func() {
		defer close(out)
		for events := newEvents(body, most); ; {
			ev, err := events.next()
			select {
			case out <- piece{ev, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	return out
}

// drain lets a provider end its stream after [DONE], so that the connection can be used again.
func drain(pieces <-chan piece) {
	patience := time.NewTimer(100 * time.Millisecond)
	defer patience.Stop()
	for {
		select {
		case _, more := <-pieces:
			if !more {
				return
			}
		case <-patience.C:
			return
		}
	}
}

// take reads one event and lets go what may go; more says that others are here already.
func (f *flow) take(ctx context.Context, ev event, more bool, alive func()) *fault {
	if ev.cut() { // with a blank line behind it, or what we add, clients would read half of it
		return nil
	}
	x := f.x
	before, path, v := x.answer.size, "", gjson.Result{}
	if len(ev.data) > 0 && !ev.done() {
		if gjson.ValidBytes(ev.data) {
			v = gjson.ParseBytes(ev.data)
			x.kind.chunk(&x.answer, v)
			path = x.kind.marked(v)
		} else {
			x.answer.opaque, x.unread = true, "an event of the stream holds no JSON"
		}
	}
	f.pending, f.held = append(f.pending, ev), f.held+int64(len(ev.raw))
	if path != "" {
		f.marked, f.path = len(f.pending)-1, path
	}
	grew := x.answer.size > before
	if grew && sentenceEnd(x.answer.tail) {
		f.cut, f.cutAt = len(f.pending), x.answer.size
	}
	switch {
	case f.mode == StreamPass:
		f.over = x.kind.over(v) || f.over && !grew
		if !ev.done() {
			f.due = max(f.due, f.free(grew && !f.over))
		}
		if f.due > 0 && (!more || f.held > together) {
			return f.release(ctx, f.due, false)
		}
	case f.mode == StreamWindow:
		return f.window(ctx, alive)
	case f.held > x.g.cfg.ResponseBytes: // only while it is held
		x.answer.opaque, x.unread = true, x.g.long()
		if fault := x.settle(ctx, audit.Output, alive); fault != nil {
			return fault
		}
		f.mode = StreamPass
		return f.release(ctx, len(f.pending), false)
	}
	return nil
}

// free gives how many events of a stream that passes need not wait. The last that can carry our report does where the model is at its end, and
// where it says nothing: until another comes, so that sounds and pictures pass while they come. goesOn says that it says more.
func (f *flow) free(goesOn bool) int {
	all := len(f.pending)
	if goesOn || f.marked < 0 || !f.over && f.marked < all-1 {
		return all
	}
	waits := f.pending[f.marked:]
	if f.over { // whatever its size
		waits = waits[1:]
	}
	size := 0
	for _, ev := range waits {
		size += len(ev.raw)
	}
	if size > together {
		return all
	}
	return f.marked
}

// window judges what came so far when it is enough, and lets its whole sentences go. The longer the
// answer, the longer its windows, so that judging stays in proportion.
func (f *flow) window(ctx context.Context, alive func()) *fault {
	least := max(f.x.g.cfg.WindowBytes, f.out/16)
	n, size := f.cut, f.cutAt
	switch {
	case f.cutAt-f.out >= least:
	case f.x.answer.size-f.out >= 4*least: // one long sentence
		n, size = len(f.pending), f.x.answer.size
	default:
		return nil
	}
	f.x.partly = true
	fault := f.x.settle(ctx, audit.Output, alive)
	f.x.partly = false
	if fault != nil {
		return fault
	}
	f.out = size
	return f.release(ctx, n, false)
}

// end judges the whole and lets the rest go.
func (f *flow) end(ctx, asking context.Context, err error, alive func()) *fault {
	x := f.x
	x.undecided = false
	clean := errors.Is(err, io.EOF)
	if !clean && f.mode == StreamHold {
		return broken(asking, err)
	}
	switch {
	case x.answer.failed != "":
		x.status, x.failure = "error", x.answer.failed
	case clean && (x.answer.ended || x.answer.opaque):
		x.status, x.failure = "success", ""
	case clean:
		x.status, x.failure = "error", "the stream ended before the model had finished"
	}
	var best take
	if f.mode == StreamHold {
		best = x.mend(ctx, take{header: f.res.Header, answer: x.answer}, alive)
	}
	if fault := x.settle(ctx, audit.Output, alive); fault != nil {
		return fault
	}
	if best.body != nil { // of a replay
		return x.retell(ctx, best)
	}
	f.mark(clean)
	if clean {
		x.ends()
	}
	if fault := f.release(ctx, len(f.pending), true); fault != nil {
		return fault
	}
	if !clean {
		return broken(asking, err)
	}
	return nil
}

// mark puts our report into the last event that can carry it, or before the end of a whole stream where all of those have gone, unless all is well and
// the headers say the rest.
func (f *flow) mark(whole bool) {
	late := f.x.replays != nil && f.x.committed
	if !f.x.marks() && !late {
		return
	}
	if f.marked >= 0 {
		ev := &f.pending[f.marked]
		if with, err := sjson.SetRawBytes(ev.data, f.path, encode(f.x.report())); err == nil {
			ev.replace(with)
		}
		return
	}
	if data := f.x.kind.carrier(f.x); whole && data != nil {
		at := len(f.pending)
		if at > 0 && f.pending[at-1].done() {
			at--
		}
		f.pending = slices.Insert(f.pending, at, event{sse("", data), data})
	}
}

// release sends the first n events that wait, of those that are masked what may go on already; last says that no more come.
func (f *flow) release(ctx context.Context, n int, last bool) *fault {
	if n == 0 && f.x.committed && !last {
		return nil
	}
	out := rawOf(f.pending[:n])
	f.held -= int64(len(out))
	if f.veil != nil {
		var fault *fault
		if out, fault = f.veil.pass(ctx, f.pending[:n], last); fault != nil {
			return fault
		}
	}
	if !f.x.committed && (f.veil == nil || len(out) > 0 || last) {
		f.x.begin(f.res.Header, f.res.StatusCode)
	}
	f.pending = f.pending[n:]
	f.marked = max(-1, f.marked-n)
	f.cut, f.due = max(0, f.cut-n), max(0, f.due-n)
	f.x.write(out)
	return nil
}

// sentenceEnd tells whether a text may be let out after r.
func sentenceEnd(r rune) bool {
	switch r {
	case '.', '!', '?', '\n', '。', '！', '？':
		return true
	}
	return false
}

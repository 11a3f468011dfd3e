package client

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// endTimeout bounds the judgement of a stream that has passed: its reader waits for it.
const endTimeout = 5 * time.Second

// errLeft is the end of a body that was closed before its end.
var errLeft = errors.New("closed by the caller")

// tap passes a stream on as it comes and judges it at its end, when nothing can be stopped any more.
type tap struct {
	c    *call
	body io.ReadCloser

	mu   sync.Mutex // Close may come while Read waits
	sse  sse
	last bool // the stream has nothing more to say
	once sync.Once
}

func newTap(c *call, body io.ReadCloser) *tap {
	return &tap{c: c, body: body, sse: sse{max: int(c.t.o.BodyBytes)}}
}

func (t *tap) Read(p []byte) (int, error) {
	n, err := t.body.Read(p)
	t.mu.Lock()
	defer t.mu.Unlock()
	if n > 0 && !t.last {
		t.sse.write(p[:n], t.event)
	}
	if t.last || err != nil {
		t.end(err)
	}
	return n, err
}

func (t *tap) event(data []byte, big bool, _ int) {
	t.c.chunk(data, big)
	t.last = t.last || t.c.kind.last(&t.c.answer, data)
}

// end judges what has passed, once; that the caller may have gone away changes nothing.
func (t *tap) end(err error) {
	t.once.Do(func() {
		if errors.Is(err, io.EOF) {
			t.sse.end(func(data []byte, big bool) { t.event(data, big, 0) })
			err = nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.c.ctx), endTimeout)
		defer cancel()
		_ = t.c.judge(ctx) // too late to stop anything, and nothing was to be stopped
		t.c.conclude(err)
	})
}

// Close ends the stream; one that is not read to its end is judged as far as it was.
func (t *tap) Close() error {
	err := t.body.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(errLeft)
	return err
}

// window lets whole sentences go once all so far was judged. What is out cannot be recalled: a block is the error of
// the next Read.
type window struct {
	c      *call
	body   io.ReadCloser
	ctx    context.Context //nolint:containedctx // of the request, ended by Close
	cancel context.CancelFunc

	mu    sync.Mutex // Close may come while Read waits
	buf   []byte
	sse   sse
	held  []byte // came and may not go on yet
	whole int    // of held: its whole events
	cut   int    // of held: up to where it ends with a sentence
	cutAt int    // bytes of text up to there
	out   int    // bytes of text that went on
	ready []byte // may go on
	err   error  // behind it
	ended bool   // all was judged, or need not be: the rest passes
}

func newWindow(c *call, body io.ReadCloser) *window {
	w := &window{c: c, body: body, sse: sse{max: int(c.t.o.BodyBytes)}, buf: make([]byte, 16<<10)}
	w.ctx, w.cancel = context.WithCancel(c.ctx)
	return w
}

func (w *window) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(w.ready) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		n, err := w.body.Read(w.buf)
		w.take(w.buf[:n], err)
	}
	n := copy(p, w.ready)
	w.ready = w.ready[n:]
	return n, nil
}

// take reads what came and lets go what may go.
func (w *window) take(p []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	base := len(w.held)
	w.held = append(w.held, p...)
	last := false
	event := func(data []byte, big bool, end int) {
		before := w.c.answer.size
		w.c.chunk(data, big)
		w.whole = base + end
		last = last || w.c.kind.last(&w.c.answer, data)
		if w.c.answer.size > before && sentenceEnd(w.c.answer.tail) {
			w.cut, w.cutAt = base+end, w.c.answer.size
		}
	}
	if !w.ended {
		w.sse.write(p, event)
		if errors.Is(err, io.EOF) {
			w.sse.end(func(data []byte, big bool) { event(data, big, len(p)) })
		}
	}
	least := max(w.c.t.o.WindowBytes, w.out/16) // the longer the answer, the longer its windows
	switch {
	case w.ended:
		w.release(len(w.held), w.out)
	case last || err != nil:
		w.end(err)
	case w.cutAt-w.out >= least:
		w.judge(w.cut, w.cutAt)
	case w.c.answer.size-w.out >= 4*least: // one long sentence
		w.judge(w.whole, w.c.answer.size)
	case len(w.held) > int(w.c.t.o.BodyBytes):
		w.c.answer.unread = "the stream has too much that is no text"
		w.judge(len(w.held), w.c.answer.size)
	}
	if err != nil && w.err == nil {
		w.err = err
	}
}

// judge lets the first n bytes go if they may: all of them, once nobody can look.
func (w *window) judge(n, text int) {
	switch stop := w.c.judge(w.ctx); {
	case stop != nil:
		w.stop(stop)
	case w.c.report.Action == Unchecked:
		w.ended = true
		w.c.conclude(nil)
		w.release(len(w.held), text)
	default:
		w.release(n, text)
	}
}

// end judges the whole and lets the rest go.
func (w *window) end(err error) {
	if stop := w.c.judge(w.ctx); stop != nil {
		w.stop(stop)
		return
	}
	n := len(w.held)
	switch {
	case errors.Is(err, io.EOF):
		err = nil
	case err != nil:
		n = w.whole // half an event was not judged
	}
	w.ended = true
	w.c.conclude(err)
	w.release(n, w.out)
}

func (w *window) release(n, text int) {
	w.ready, w.held = w.held[:n:n], w.held[n:]
	w.cut, w.whole, w.out = max(0, w.cut-n), max(0, w.whole-n), text
}

// stop ends the stream here.
func (w *window) stop(err error) {
	if w.ctx.Err() != nil {
		w.c.conclude(errLeft)
	}
	w.err, w.held = err, nil
	_ = w.body.Close() // the caller learns what stopped it
}

// Close ends the stream.
func (w *window) Close() error {
	w.cancel()
	err := w.body.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.c.conclude(errLeft)
	return err
}

package main

import (
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// progress shows a bar with rate and time left on a terminal, and a line every few seconds elsewhere.
type progress struct {
	began time.Time
	w     io.Writer
	quiet bool
	pool  *mpb.Progress
	bar   *mpb.Bar
	size  int64
	shown time.Time
	items atomic.Int64
}

// onTerminal tells whether a person reads what is written.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// newProgress takes the size of the input in bytes, 0 when it is not known.
func newProgress(w io.Writer, size int64, quiet bool) *progress {
	p := &progress{began: time.Now(), w: w, quiet: quiet, size: size, shown: time.Now()}
	if !quiet && onTerminal(w) {
		p.pool = mpb.New(mpb.WithOutput(w), mpb.WithWidth(48))
		rate := decor.Any(func(decor.Statistics) string {
			n := p.items.Load()
			return fmt.Sprintf(" %d events  %.0f/s ", n, float64(n)/max(time.Since(p.began).Seconds(), 1e-3))
		})
		p.bar = p.pool.New(size, mpb.BarStyle(), mpb.PrependDecorators(decor.Percentage()),
			mpb.AppendDecorators(rate, decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO), "")))
	}
	return p
}

// set tells how many events are sent and how many bytes are read.
func (p *progress) set(items int, bytes int64) {
	p.items.Store(int64(items))
	switch {
	case p.quiet:
	case p.bar != nil:
		p.bar.SetCurrent(min(bytes, max(p.size-1, 0))) // the last byte is done's
	case time.Since(p.shown) > 2*time.Second:
		p.shown = time.Now()
		p.line(bytes)
	}
}

func (p *progress) line(bytes int64) {
	took := time.Since(p.began)
	text := fmt.Sprintf("%d events, %.0f a second", p.items.Load(), float64(p.items.Load())/max(took.Seconds(), 1e-3))
	if p.size > 0 && bytes > 0 && bytes < p.size {
		left := time.Duration(float64(took) * float64(p.size-bytes) / float64(bytes))
		text = fmt.Sprintf("%3d%%  %s, %s left", bytes*100/p.size, text, left.Round(time.Second))
	}
	fmt.Fprintln(p.w, text)
}

// say prints a line above the bar.
func (p *progress) say(s string) {
	if p.pool != nil {
		_, _ = fmt.Fprintln(p.pool, s)
		return
	}
	fmt.Fprintln(p.w, s)
}

// done ends the bar.
func (p *progress) done() {
	if p.bar != nil {
		p.bar.SetTotal(-1, true)
		p.pool.Wait()
	}
}

func (p *progress) elapsed() time.Duration { return time.Since(p.began) }

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/judge/replay"
)

// Replaying says how often an answer that does not pass is asked for again before the caller gets one.
type Replaying struct {
	Rounds  int           `koanf:"rounds"`  // at most; 0: never
	Timeout time.Duration `koanf:"timeout"` // for all rounds and validations of a call
}

const maxRounds = 10

// replays is what became of a call's answers.
type replays struct {
	run    audit.ID
	rounds []replay.Round
	takes  []take // of the rounds, in order
	best   int    // 0 where none is better, or none could be validated
	stop   replay.Stop
	kept   audit.ID // of the interaction that the caller's answer is
}

// take is one answer of the provider as it came.
type take struct {
	body   []byte // nil of a stream
	header http.Header
	answer answer
}

// replayNote is what callers and the record are told.
type replayNote struct {
	Rounds int         `json:"rounds"` // replays that were made
	Kept   int         `json:"kept"`   // the round that was passed on; 0 is the first answer
	Stop   replay.Stop `json:"stop"`
	ID     string      `json:"id"` // of the interaction that holds what was passed on
}

func (r *replays) note() *replayNote {
	if r == nil {
		return nil
	}
	return &replayNote{max(0, len(r.rounds)-1), r.best, r.stop, r.kept.String()}
}

// mend has an answer that is here whole asked for again while it does not pass, and gives the best one. What cannot be
// validated stays as it is. Several choices and calls of tools are not replayed. alive is called meanwhile; it may be nil.
func (x *exchange) mend(ctx context.Context, first take, alive func()) take {
	if x.opts.rounds == 0 || x.g.Validate == nil || x.failure != "" || x.answer.opaque || !x.answer.plain() {
		return first
	}
	began := x.g.Now()
	defer func() { x.paused += x.g.Now().Sub(began) }()
	ctx, release := x.g.bound(ctx)
	defer release()
	ctx, cancel := context.WithTimeout(ctx, x.g.cfg.Replay.Timeout)
	defer cancel()
	r := &replays{run: audit.NewID(began), takes: []take{first}, kept: x.id}
	stop := x.keep(alive)
	defer stop()
	res, err := replay.Run(ctx, replay.Response{Text: first.answer.text(), Model: first.answer.model}, replay.Options{
		Rounds: x.opts.rounds,
		Call: func(ctx context.Context, f replay.Feedback) (replay.Response, error) {
			t, err := x.again(ctx, f.Message())
			r.takes = append(r.takes, t)
			return replay.Response{Text: t.answer.text(), Model: t.answer.model}, err
		},
		Check: func(ctx context.Context, _ string) (*replay.Check, error) {
			in, err := x.interaction(x.as(r.takes[len(r.takes)-1].answer))
			if err != nil {
				return nil, err
			}
			return x.g.Validate(ctx, in)
		},
	})
	stop() // from here on x changes
	x.replays, r.rounds, r.stop, r.best = r, res.Rounds, res.Stop, max(0, res.Best)
	if err != nil {
		x.g.Logger.Warn("an answer was not validated to the end", "interaction_id", x.id.String(), "stop", string(res.Stop), "kind", string(audit.KindOf(err)))
	}
	best := r.takes[r.best]
	x.answer = best.answer
	if r.best > 0 {
		if in, err := x.interaction(x.round(r.best)); err == nil {
			r.kept = in.ID
		}
	}
	return best
}

var errAgain = errors.New("the provider gave no other answer")

// again makes the call with one more message of the user. Of a stream, too, the answer comes in one piece: nobody reads along.
func (x *exchange) again(ctx context.Context, say string) (t take, err error) {
	bad := func(kind audit.Kind) (take, error) { return t, audit.E("gateway: replay", kind, errAgain) }
	at := x.kind.texts()
	body := x.req.body
	if x.opts.masks(audit.Input) {
		masked, err := x.g.Mask.MaskMore(ctx, &x.mask.memory, []string{say})
		if err != nil {
			return bad(audit.KindUnavailable)
		}
		say = masked[0].Text
	}
	if v := gjson.GetBytes(body, at); v.Type == gjson.String {
		if body, err = sjson.SetRawBytes(body, at, encode([]any{map[string]string{"role": "user", "content": v.String()}})); err != nil {
			return bad(audit.KindInternal)
		}
	}
	if body, err = sjson.SetRawBytes(body, at+".-1", encode(map[string]string{"role": "user", "content": say})); err != nil {
		return bad(audit.KindInternal)
	}
	for _, name := range []string{"stream", "stream_options"} {
		if body, err = sjson.DeleteBytes(body, name); err != nil {
			return bad(audit.KindInternal)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, x.up.Timeout)
	defer cancel()
	q, err := x.up.request(ctx, http.MethodPost, x.kind.path(), body, x.r, x.caller)
	if err != nil {
		return bad(audit.KindInternal)
	}
	q.Header.Del("Idempotency-Key") // it is another call
	if x.req.stream {
		q.Header.Set("Accept", "application/json")
	}
	q.Header.Set("Traceparent", x.parent)
	q.Header.Set("X-Request-Id", x.requestID)
	res, err := x.up.client.Do(q)
	if err != nil {
		return bad(audit.KindUnavailable)
	}
	defer func() { _ = res.Body.Close() }()
	if t.body, err = io.ReadAll(io.LimitReader(res.Body, x.g.cfg.ResponseBytes+1)); err != nil || res.StatusCode != http.StatusOK {
		return bad(audit.KindUnavailable)
	}
	if int64(len(t.body)) > x.g.cfg.ResponseBytes || packed(res.Header) != "" || !gjson.ValidBytes(t.body) {
		return bad(audit.KindInvalid)
	}
	t.header = res.Header
	x.kind.whole(&t.answer, gjson.ParseBytes(t.body))
	if t.answer.opaque || t.answer.failed != "" || !t.answer.plain() {
		return bad(audit.KindInvalid)
	}
	return t, nil
}

// retell sends an answer in one piece as the stream that its caller asked for, with our report.
func (x *exchange) retell(ctx context.Context, t take) *fault {
	body, f := x.maskAnswer(ctx, t.body)
	if f != nil {
		return f
	}
	if with, err := sjson.SetRawBytes(body, "evenhand", encode(x.report())); err == nil {
		body = with
	}
	if !x.committed {
		t.header.Set("Content-Type", "text/event-stream")
		x.begin(t.header, http.StatusOK)
	}
	x.ends()
	x.write(x.kind.events(body, x.req.usage()))
	return nil
}

// plain tells that an answer is one text and nothing else.
func (a *answer) plain() bool {
	ms := a.messages()
	for _, c := range a.choices {
		if c.voice || slices.ContainsFunc(c.tools, func(t *tool) bool { return !t.hosted && (t.Name != "" || t.args.Len() > 0) }) {
			return false
		}
	}
	return len(ms) == 1 && strings.TrimSpace(a.text()) != ""
}

// text is what the first choice says.
func (a *answer) text() string {
	for _, c := range a.choices {
		return c.text.String()
	}
	return ""
}

// as tells the call with another answer.
func (x *exchange) as(a answer) *call.Part {
	own := x.answer
	defer func() { x.answer = own }()
	x.answer = a
	return x.part()
}

// round tells a round as an event of its own; round 0 is the call itself.
func (x *exchange) round(n int) *call.Part {
	r := x.replays
	if n >= len(r.takes) { // the loop ended before it was asked
		return nil
	}
	p := x.as(r.takes[n].answer)
	if n != r.best && p.Status == "success" {
		p.Status = call.Blocked // nobody got it
	}
	if n == 0 {
		return p
	}
	round := &r.rounds[n]
	note := replay.RoundNoteOf(x.id, r.run, round)
	p.Given, p.Latency = replay.RoundID(x.id, r.run, n, note.Outcome), round.Called
	p.Messages = append(p.Messages[:len(p.Messages):len(p.Messages)], call.Text("user", round.Feedback.Message()))
	p.Metadata["replay"] = note
	if round.Response.Text == "" {
		p.Status, p.Error = "error", "the provider gave no other answer"
	}
	return p
}

// parts are the events of a call: its own, and one for each replay.
func (x *exchange) parts() []*call.Part {
	if x.replays == nil {
		return []*call.Part{x.answered(x.part())}
	}
	var out []*call.Part
	for n := range x.replays.rounds {
		if p := x.round(n); p != nil {
			out = append(out, x.answered(p))
		}
	}
	return out
}

// answered adds the status that the caller got, where it is an error. A call that is under way has none: what keeps its
// connection open may begin the answer meanwhile.
func (x *exchange) answered(p *call.Part) *call.Part {
	if own, ok := p.Metadata["gateway"].(map[string]any); ok && x.code >= 400 {
		own["http_status"] = x.code
	}
	return p
}

func (n *replayNote) String() string {
	return fmt.Sprintf("rounds=%d, kept=%d, stop=%s, id=%s", n.Rounds, n.Kept, n.Stop, n.ID)
}

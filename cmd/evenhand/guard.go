package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/door"
)

// guardSettings are the options of texts that are judged in line, where the caller leaves them out.
type guardSettings struct {
	Domain          string        `koanf:"domain"`            // of texts whose sender names none; unset: general
	BiasThreshold   *float64      `koanf:"bias_threshold"`    // unset: the domain profile's
	BiasAction      string        `koanf:"bias_action"`       // warn or block
	SafetyFilter    bool          `koanf:"safety_filter"`     // look for unsafe content, too
	SafetyMode      string        `koanf:"safety_mode"`       // block, warn or log
	SafetyThreshold float64       `koanf:"safety_threshold"`  // 0..1, lower is stricter
	HITLGate        bool          `koanf:"hitl_gate"`         // let a person approve what matches detect.gate_rules
	HITLGateTimeout time.Duration `koanf:"hitl_gate_timeout"` // 0: that of gates
	Check           string        `koanf:"check"`             // response, prompt or both
	// Judge is when a language model is asked before the decision: off, grey, all; JudgeAction what it may do, warn or block.
	Judge        string        `koanf:"judge"`
	JudgeAction  string        `koanf:"judge_action"`
	JudgeTimeout time.Duration `koanf:"judge_timeout"`
	// FailOpen lets texts pass, and says so, that could not be judged or whose event has no room in the queue.
	FailOpen bool `koanf:"fail_open"`
	// Queue and QueueMB bound the events that the log has not acknowledged yet, of decisions and of LiteLLM's
	// calls each. A process that is killed loses them; one that is ended sends them first.
	Queue   int   `koanf:"queue"`
	QueueMB int64 `koanf:"queue_mb"`
}

func defaultGuard() guardSettings {
	o, q := guard.DefaultOptions(), guard.DefaultQueueConfig()
	return guardSettings{
		BiasAction: string(o.BiasAction), SafetyMode: string(o.SafetyMode), SafetyThreshold: o.SafetyThreshold.Float(),
		Check: string(o.Check), Judge: guard.AskNever, JudgeAction: string(audit.Warn), JudgeTimeout: 5 * time.Second, Queue: q.Items, QueueMB: q.Bytes >> 20,
	}
}

func (g guardSettings) options() guard.Options {
	o := guard.Options{
		Domain: audit.Domain(g.Domain), BiasAction: audit.Action(g.BiasAction), SafetyFilter: g.SafetyFilter, SafetyMode: audit.Action(g.SafetyMode),
		SafetyThreshold: audit.ScoreOf(g.SafetyThreshold), HITLGate: g.HITLGate, HITLGateTimeout: g.HITLGateTimeout, Check: guard.Check(g.Check),
	}
	if g.BiasThreshold != nil {
		t := audit.ScoreOf(*g.BiasThreshold)
		o.BiasThreshold = &t
	}
	return o
}

func (g guardSettings) judging(j guard.Judge) guard.Judging {
	return guard.Judging{Judge: j, Ask: g.Judge, Action: audit.Action(g.JudgeAction), Timeout: g.JudgeTimeout, FailOpen: g.FailOpen}
}

// guardKeys are the settings' names of options.
var guardKeys = strings.NewReplacer("biasThreshold", "bias_threshold", "biasAction", "bias_action", "safetyMode", "safety_mode", "safetyThreshold", "safety_threshold",
	"hitlGateTimeoutMs: wants 1 to 86400000", "hitl_gate_timeout: wants 1ms to 24h")

func (g guardSettings) validate() error {
	var errs []error
	o := g.options()
	for _, f := range o.Faults() {
		errs = append(errs, errors.New("guard."+guardKeys.Replace(f.String())))
	}
	errs = append(errs, g.judging(nil).Validate("guard"))
	if g.Queue < 1 || g.Queue > 1_000_000 {
		errs = append(errs, fmt.Errorf("guard.queue: %d is not in 1..1000000", g.Queue))
	}
	if g.QueueMB < 1 || g.QueueMB > 4096 {
		errs = append(errs, fmt.Errorf("guard.queue_mb: %d is not in 1..4096", g.QueueMB))
	}
	return errors.Join(errs...)
}

// liteLLMLinger is how long what LiteLLM tells of a stream waits for more of it.
const liteLLMLinger = time.Second

// startGuard makes the guard and its queues.
func (st *stack) startGuard(judge guard.Judge) {
	s := st.settings.Guard
	size := guard.QueueConfig{Items: s.Queue, Bytes: s.QueueMB << 20}
	front := &frontDoor{st}
	_ = front.fits(ingest.Message{}) // asks for the topic's limit, so that it is known when the first text comes
	events := guard.NewQueue(size, guard.QueueOptions[ingest.Message]{
		Send: front.Produce, Size: func(m ingest.Message) int { return len(m.Value) }, Fits: front.fits,
		Count: func(outcome string, n int) { st.metrics.GuardQueue("events", outcome, n) }, Logger: st.log,
	})
	size.Linger = liteLLMLinger
	parts := guard.NewQueue(size, guard.QueueOptions[call.Part]{
		Send: st.writer.Parts, Size: partSize, Fold: call.Merge,
		Key:   func(p call.Part) string { return p.Tenant + "\x00" + p.Claimed + "\x00" + p.Group },
		Count: func(outcome string, n int) { st.metrics.GuardQueue("calls", outcome, n) }, Logger: st.log,
	})
	st.metrics.FollowGuard(func(queue string) int {
		if queue == "calls" {
			n, _ := parts.Len()
			return n
		}
		n, _ := events.Len()
		return n
	})
	st.inline = &door.Inline{
		Guard: guard.New(st.analyzer, guard.Config{FailOpen: s.FailOpen, Judging: s.judging(judge), Logger: st.log}), Defaults: s.options(),
		Events: events, Parts: parts, FailOpen: s.FailOpen, Metrics: st.metrics,
	}
	if st.gates != nil {
		st.inline.Gates = inlineGates{st.gates}
	}
}

// stopGuard sends what waits, for a while.
func (st *stack) stopGuard(ctx context.Context) error {
	if st.inline == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return errors.Join(st.inline.Events.Close(ctx), st.inline.Parts.Close(ctx))
}

// partSize is about what a part takes.
func partSize(p call.Part) int {
	n := 512
	for _, ms := range [][]call.Message{p.Messages, p.Answers} {
		for _, m := range ms {
			n += len(m.Content) + len(m.Calls) + len(m.Reasoning)
		}
	}
	return n
}

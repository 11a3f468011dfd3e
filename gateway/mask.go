package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/pii"
)

// In what placeholders are put in the place of personal data.
const (
	MaskOff      = "off"
	MaskRequest  = "request"  // what the provider gets
	MaskResponse = "response" // what the caller gets
	MaskBoth     = "both"
)

const codeNotMasked = "evenhand_not_masked"

// maxTexts is how many strings of a request, or of an answer, are looked at: 100,000 take about a second.
const maxTexts = 100_000

// longestMask is how many bytes a placeholder has that is put back.
const longestMask = 128

// Masker puts placeholders in the place of personal data: a *guard.Guard.
type Masker interface {
	Masks() bool // whether anything looks for personal data at all
	MaskMore(ctx context.Context, memory *pii.Memory, texts []string) ([]pii.Masked, error)
}

// masking is what was masked of a call.
type masking struct {
	memory pii.Memory
	values map[string]string  // that placeholders of the request stand for, where they are put back
	used   [2]map[string]bool // placeholders that went on, of request and answer
	failed [2]bool            // it passed as it came
}

// masks tells whether a side is masked.
func (o *options) masks(side audit.Side) bool { return o.mask[sideIndex(side)] }

// masksOf gives the sides that a value of gateway.mask names.
func masksOf(value string) [2]bool {
	return [2]bool{value == MaskRequest || value == MaskBoth, value == MaskResponse || value == MaskBoth}
}

// unmasked is what holds when a side could not be looked at.
func (x *exchange) unmasked(side audit.Side, why string) *fault {
	x.action, x.mask.failed[sideIndex(side)] = unchecked, true
	if x.g.cfg.Fail == FailOpen {
		x.g.Logger.Warn("a call passes without masks", "interaction_id", x.id.String(), "tenant", x.caller.tenant, "reason", why)
		return nil
	}
	x.status, x.failure = "blocked", why
	x.g.Logger.Warn("a call is refused: it could not be masked, and gateway.fail is closed", "interaction_id", x.id.String(), "tenant", x.caller.tenant, "reason", why)
	return &fault{status: http.StatusServiceUnavailable, kind: kindServer, code: codeNotMasked, say: why + ", so personal data could not be masked, and gateway.fail is closed", after: time.Second, final: x.lasting(), report: x.report()}
}

// tooMany says that there are more texts than are looked at.
func tooMany(what string) string { return fmt.Sprintf("the %s has more than %d texts", what, maxTexts) }

// maskRequest puts placeholders into the body that the provider gets.
func (x *exchange) maskRequest(ctx context.Context) *fault {
	if !x.opts.masks(audit.Input) {
		return nil
	}
	body := x.req.body
	found := readSpots(body, readByModel)
	if len(found) > maxTexts {
		return x.unmasked(audit.Input, tooMany("request"))
	}
	texts := textsOf(found)
	if x.g.cfg.Unmask { // what looks like one of ours is of other calls, and nothing may be put in its place
		x.mask.memory.Reserve(texts)
	}
	masked, err := x.g.Mask.MaskMore(ctx, &x.mask.memory, texts)
	switch {
	case err != nil && ctx.Err() != nil:
		return gone
	case err != nil:
		return x.unmasked(audit.Input, "nobody could look at the request")
	}
	for i, m := range masked {
		found[i].changes = x.masked(audit.Input, found[i].text, m)
	}
	if x.req.body = rewritten(body, found); x.g.cfg.Unmask && x.stateless() {
		x.mask.values = x.mask.memory.Values()
	}
	return nil
}

// stateless tells that the provider sees no texts but those of the request: in those that it has kept of other calls, a placeholder of the same name
// may stand for another value.
func (x *exchange) stateless() bool {
	return !slices.ContainsFunc([]string{"previous_response_id", "conversation"}, func(name string) bool {
		raw := string(x.req.fields[name])
		return raw != "" && raw != "null"
	})
}

// maskAnswer edits an answer in one piece as its caller may have it.
func (x *exchange) maskAnswer(ctx context.Context, body []byte) ([]byte, *fault) {
	masks := x.opts.masks(audit.Output)
	switch {
	case !masks && len(x.mask.values) == 0:
		return body, nil
	case x.answer.opaque && masks:
		return body, x.unmasked(audit.Output, x.unreadable())
	case x.answer.opaque:
		return body, nil
	}
	found := readSpots(body, func(path []step) bool { return x.kind.told(path, false) })
	if len(found) > maxTexts {
		return body, x.unmasked(audit.Output, tooMany("response"))
	}
	var masked []pii.Masked
	if masks {
		var err error
		masked, err = x.g.Mask.MaskMore(ctx, &x.mask.memory, textsOf(found))
		switch {
		case err != nil && ctx.Err() != nil:
			return body, gone
		case err != nil:
			return body, x.unmasked(audit.Output, "nobody could look at the response")
		}
	}
	for i := range found {
		f := &found[i]
		if masks {
			f.changes = x.masked(audit.Output, f.text, masked[i])
		}
		f.changes = x.putBack(f.text, f.changes)
		f.tokens = f.tokens && masks
	}
	return rewritten(body, found), nil
}

// reading is a string of JSON with its text and what is to be changed in that.
type reading struct {
	spot
	text    string
	changes []change
}

// readSpots gives the strings of valid JSON that some paths lead to, but for pictures and the like.
func readSpots(body []byte, wanted func(path []step) bool) (out []reading) {
	walk(body, func(path []step, s spot) {
		if !wanted(path) {
			return
		}
		r := reading{spot: s}
		if !s.tokens {
			if r.text = gjson.ParseBytes(body[s.from:s.to]).String(); r.text == "" || encoded(r.text) {
				return
			}
		}
		out = append(out, r)
	})
	return out
}

func textsOf(found []reading) []string {
	out := make([]string, len(found))
	for i, f := range found {
		out[i] = f.text
	}
	return out
}

// rewritten gives JSON with the changes of its strings; everything else stays byte for byte.
func rewritten(body []byte, found []reading) []byte {
	var edits []change
	for _, f := range found {
		switch {
		case f.tokens:
			edits = append(edits, untold(body, f.spot))
		case len(f.changes) > 0:
			edits = append(edits, change{f.from, f.to, string(quoted(string(changed([]byte(f.text), f.changes))))})
		}
	}
	if len(edits) == 0 {
		return body
	}
	return changed(body, edits)
}

// untold empties a list of tokens: they are the text once more, in pieces.
func untold(body []byte, s spot) change {
	with := "[]"
	if body[s.from] == '{' {
		with = "null"
	}
	return change{s.from, s.to, with}
}

// masked gives what was masked in a text as changes, and notes it.
func (x *exchange) masked(side audit.Side, text string, m pii.Masked) []change {
	out := changesOf(text, m)
	for _, c := range out {
		x.uses(side, c.with)
	}
	return out
}

// uses notes that a placeholder, which may have quotation marks, goes on.
func (x *exchange) uses(side audit.Side, placeholder string) {
	used := &x.mask.used[sideIndex(side)]
	if *used == nil {
		*used = map[string]bool{}
	}
	(*used)[strings.Trim(placeholder, `"\'`)] = true
}

// changesOf gives places, which are in code points, in bytes and with their placeholders.
func changesOf(text string, m pii.Masked) []change {
	if !m.Changed() {
		return nil
	}
	out := make([]change, 0, len(m.Places))
	was, is := runes{text: text}, runes{text: m.Text}
	for _, p := range m.Places {
		c := change{from: was.byte(p.Original.Start), to: was.byte(p.Original.End)}
		from := is.byte(p.Masked.Start)
		c.with = m.Text[from:is.byte(p.Masked.End)]
		out = append(out, c)
	}
	return out
}

// runes leads from code points of a text to its bytes, front to back.
type runes struct {
	text string
	n    uint32
	at   int
}

func (r *runes) byte(n uint32) int {
	for r.n < n && r.at < len(r.text) {
		_, size := utf8.DecodeRuneInString(r.text[r.at:])
		r.at += size
		r.n++
	}
	return r.at
}

// putBack adds to the changes of an answer's text that placeholders of the request become the values that they stand for.
func (x *exchange) putBack(text string, changes []change) []change {
	if len(x.mask.values) == 0 {
		return changes
	}
	inJSON := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[{") || strings.HasPrefix(text, `["`)
	var back []change
	for at := 0; ; {
		i := strings.IndexByte(text[at:], '[')
		if i < 0 {
			break
		}
		at += i
		end := strings.IndexByte(text[at:min(len(text), at+longestMask)], ']') + 1
		value, ours := x.mask.values[text[at:at+end]]
		if !ours {
			at++
			continue
		}
		if inJSON {
			q := quoted(value)
			value = string(q[1 : len(q)-1])
		}
		c := change{at, at + end, value}
		if !slices.ContainsFunc(changes, func(o change) bool { return o.from < c.to && c.from < o.to }) {
			back = append(back, c)
		}
		at += end
	}
	if len(back) == 0 {
		return changes
	}
	back = append(back, changes...)
	slices.SortFunc(back, func(a, b change) int { return a.from - b.from })
	return back
}

// half gives where a placeholder that may be put back begins and is cut off by the end of a text; the text's end where none is.
func (x *exchange) half(text string) int {
	at := strings.LastIndexByte(text, '[')
	if at >= 0 {
		for p := range x.mask.values {
			if len(text)-at < len(p) && strings.HasPrefix(p, text[at:]) {
				return at
			}
		}
	}
	return len(text)
}

// kinds counts what was masked of a side, by entity: each value once.
func (m *masking) kinds(i int) map[string]int {
	out := map[string]int{}
	for p := range m.used[i] {
		out[pii.EntityOf(p)]++
	}
	return out
}

var sideNames = [2]string{"request", "response"}

// note is what the record says of what was masked; nil for nothing.
func (m *masking) note() map[string]any {
	out := map[string]any{}
	for i, side := range sideNames {
		if m.failed[i] {
			out[side] = "failed"
		} else if n := m.kinds(i); len(n) > 0 {
			out[side] = n
		}
	}
	return out
}

// String is the note as a header: request; EMAIL=1; IBAN=2, response; EMAIL=1.
func (m *masking) String() string {
	var sides []string
	for i, side := range sideNames {
		n := m.kinds(i)
		switch {
		case m.failed[i]:
			side += "; failed"
		case len(n) == 0:
			continue
		}
		for _, entity := range slices.Sorted(maps.Keys(n)) {
			side += fmt.Sprintf("; %s=%d", entity, n[entity])
		}
		sides = append(sides, side)
	}
	return strings.Join(sides, ", ")
}

// notHushed are members of our report that hold no words of people.
var notHushed = []string{"id", "trace_id", "gate", "version", "rule", "kind", "action", "reasons", "name", "domain", "status", "side", "severity", "characteristic"}

// hush masks our report on an answer that is masked: its evidence quotes the answer.
func (x *exchange) hush(report []byte) []byte {
	found := readSpots(report, func(path []step) bool {
		for i := len(path) - 1; i >= 0; i-- {
			if path[i].name != "" {
				return !slices.Contains(notHushed, path[i].name)
			}
		}
		return false
	})
	texts := textsOf(found)
	for _, m := range x.answer.messages() { // what they show to be personal is so where it is quoted
		for _, raw := range [][]byte{m.Content, m.Reasoning, m.Calls} {
			walk(raw, func(_ []step, s spot) { texts = append(texts, gjson.ParseBytes(raw[s.from:s.to]).String()) })
		}
	}
	masked, err := x.g.Mask.MaskMore(x.r.Context(), x.mask.memory.Draft(), texts)
	for i := range found {
		if err != nil {
			found[i].changes = []change{{0, len(found[i].text), pii.NotMasked}}
		} else {
			found[i].changes = changesOf(found[i].text, masked[i])
		}
	}
	return rewritten(report, found)
}

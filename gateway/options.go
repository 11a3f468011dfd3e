package gateway

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
)

const codeBadOption = "evenhand_bad_option"

// options are what holds for one call.
type options struct {
	guard.Options
	stream string
	judged bool // by a judge that may block
	rounds int  // of replays
	mask   [2]bool
}

// setters read the options that callers may set, by name; the error says what is wanted.
var setters = []struct {
	name string
	set  func(o *options, value string) error
}{
	{"domain", func(o *options, v string) error {
		o.Domain = audit.Domain(strings.ToLower(v))
		if !o.Domain.Known() {
			return fmt.Errorf("wants one of %v", audit.Domains)
		}
		return nil
	}},
	{"check", func(o *options, v string) error {
		o.Check = guard.Check(v)
		return among(v, string(guard.Response), string(guard.Prompt), string(guard.Both))
	}},
	{"bias_threshold", func(o *options, v string) error {
		s, err := threshold(v)
		o.BiasThreshold = &s
		return err
	}},
	{"bias_action", func(o *options, v string) error {
		o.BiasAction = audit.Action(v)
		return among(v, string(audit.Warn), string(audit.Block))
	}},
	{"safety_filter", func(o *options, v string) error { return boolean(&o.SafetyFilter, v) }},
	{"safety_mode", func(o *options, v string) error {
		o.SafetyMode = audit.Action(v)
		return among(v, string(audit.Block), string(audit.Warn), string(audit.Log))
	}},
	{"safety_threshold", func(o *options, v string) (err error) {
		o.SafetyThreshold, err = threshold(v)
		return err
	}},
	{"hitl_gate", func(o *options, v string) error { return boolean(&o.HITLGate, v) }},
	{"mask", func(o *options, v string) error { // never less than the settings say
		more := masksOf(v)
		o.mask[0], o.mask[1] = o.mask[0] || more[0], o.mask[1] || more[1]
		return among(v, MaskOff, MaskRequest, MaskResponse, MaskBoth)
	}},
	{"replay", func(o *options, v string) (err error) {
		if o.rounds, err = strconv.Atoi(v); err != nil || o.rounds < 0 || o.rounds > maxRounds {
			return fmt.Errorf("wants a number of rounds from 0 to %d", maxRounds)
		}
		return nil
	}},
	{"stream", func(o *options, v string) error {
		o.stream = v
		return among(v, StreamAuto, StreamHold, StreamWindow, StreamPass)
	}},
}

// OverrideNames lists the options that callers may set where gateway.overrides names them, which may write dashes: as
// the header x-evenhand-NAME with dashes, or as evenhand_NAME in the request's metadata.
func OverrideNames() []string {
	var out []string
	for _, s := range setters {
		out = append(out, s.name)
	}
	return out
}

const headerPrefix = "x-evenhand-"

// Headers and members of metadata that are ours and no options.
var (
	ownHeaders  = []string{KeyHeader, auth.TenantHeader, UpstreamHeader, applicationHeader, conversationHeader}
	ownMetadata = []string{applicationMeta, conversationMeta}
)

// header is an option's header.
func header(option string) string { return headerPrefix + strings.ReplaceAll(option, "_", "-") }

// underscored is how options are named here.
func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// allows tells whether callers may set an option.
func (c Config) allows(option string) bool {
	return slices.ContainsFunc(c.Overrides, func(o string) bool { return underscored(o) == option })
}

// unknown refuses what bears our prefix and is nothing of ours: a mistyped option would be one that nobody heeds.
func unknown(h http.Header, metadata gjson.Result) *fault {
	var headers, members []string
	for _, s := range setters {
		headers, members = append(headers, header(s.name)), append(members, metaPrefix+s.name)
	}
	for _, own := range ownHeaders {
		headers = append(headers, strings.ToLower(own))
	}
	members = append(members, ownMetadata...)
	for _, given := range slices.Sorted(maps.Keys(h)) {
		if name := strings.ToLower(given); strings.HasPrefix(name, headerPrefix) && !slices.Contains(headers, name) {
			return noOption("", name, headers)
		}
	}
	var f *fault
	metadata.ForEach(func(k, _ gjson.Result) bool {
		if name := k.String(); strings.HasPrefix(strings.ToLower(name), metaPrefix) && !slices.Contains(members, name) {
			f = noOption("metadata.", name, members)
		}
		return f == nil
	})
	return f
}

// noOption names what is known beside a name that is not.
func noOption(where, name string, known []string) *fault {
	at := where + ingest.Shown(name)
	say := "; known are " + strings.Join(known, ", ")
	if near := ingest.Nearest(strings.ToLower(name), known); near != "" {
		say = "; did you mean " + near + "?"
	}
	return &fault{status: http.StatusBadRequest, kind: kindRequest, code: codeBadOption, param: at, say: at + " is no option" + say}
}

func among(v string, of ...string) error {
	if !slices.Contains(of, v) {
		return fmt.Errorf("wants one of %s", strings.Join(of, ", "))
	}
	return nil
}

func boolean(to *bool, v string) (err error) {
	if *to, err = strconv.ParseBool(v); err != nil {
		return errors.New("wants true or false")
	}
	return nil
}

func threshold(v string) (audit.Score, error) {
	f, err := strconv.ParseFloat(v, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, errors.New("wants a number from 0 to 1")
	}
	return audit.ScoreOf(f), nil
}

// options gives what holds for a call: the settings, and over them what the caller may set, by metadata
// and then by header.
func (g *Gateway) options(h http.Header, metadata gjson.Result) (options, *fault) {
	o := options{g.guard, g.cfg.Stream, g.cfg.Judging(nil).Blocks(), g.cfg.Replay.Rounds, masksOf(g.cfg.Mask)}
	if f := unknown(h, metadata); f != nil {
		return o, f
	}
	for _, s := range setters {
		name, header := metaPrefix+s.name, header(s.name)
		for _, given := range []struct{ where, value string }{{"metadata." + name, metadata.Get(name).String()}, {header, h.Get(header)}} {
			if given.value == "" {
				continue
			}
			f := &fault{status: http.StatusBadRequest, kind: kindRequest, code: codeBadOption, param: given.where}
			if !g.cfg.allows(s.name) {
				f.say = given.where + " may not be set by callers here; gateway.overrides names what may"
				return o, f
			}
			if err := s.set(&o, given.value); err != nil {
				f.say = given.where + " " + err.Error()
				return o, f
			}
		}
	}
	stops := o.stops()
	switch {
	case o.stream == StreamAuto && stops:
		o.stream = StreamHold
	case o.stream == StreamAuto:
		o.stream = StreamPass
	case o.stream == StreamPass && stops:
		return o, &fault{status: http.StatusBadRequest, kind: kindRequest, code: codeBadOption, param: "stream",
			say: "streams cannot pass unjudged where something may be blocked or gated: choose hold or window"}
	}
	return o, nil
}

// stops tells whether anything but a warning can come of a call.
func (o *options) stops() bool {
	return o.judged || o.BiasAction == audit.Block || o.SafetyFilter && o.SafetyMode == audit.Block || o.HITLGate
}

// looks tells whether a side is judged.
func (o *options) looks(at guard.Check) bool { return o.Check == at || o.Check == guard.Both }

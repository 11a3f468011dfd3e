package audit

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Unknown marks a whole-number field (tokens, cost, latency) that the producer did not send.
const Unknown = -1

// Tristate is a boolean that may be unknown: 1 true, 0 false, -1 unknown.
type Tristate int8

// TristateOf gives 1 or 0.
func TristateOf(b bool) Tristate {
	if b {
		return 1
	}
	return 0
}

// Interaction is one call of an LLM by an application, as decoded. It is immutable after decoding.
//
// Fields marked [text] are personal or free text: they are stored in interaction_texts only and
// never reach errors, logs, traces or tickets.
type Interaction struct {
	ID        ID     // the producer's UUID, or derived: see package ingest
	GivenID   string // the producer's id when it is not a UUID
	IDAssumed bool   // the event carried no id; ID comes from topic, partition, offset and broker time
	Tenant    string

	Time        time.Time // event time, UTC, whole milliseconds
	TimeAssumed bool      // the event carried no time; Time is that of its arrival, at a door or the broker
	TimeSuspect bool      // event and broker time differ by more than five minutes

	TraceID      string // W3C trace id, 32 lower-case hexadecimal digits, never empty after decoding
	SpanID       string // 16 hexadecimal digits, or ""
	Conversation string
	Application  string
	Domain       Domain // one of Domains
	DomainGiven  string // what the producer sent when it is not one of Domains, else ""
	DecisionID   string // the decision this interaction served (judgment graph)

	UserID, UserEmail, UserRole string // [text]
	QueryContext                string // [text] canonical JSON, "" when absent
	Query                       string // [text] last user message, or the plain prompt
	Prompt                      string // [text] the whole prompt: plain, or the contents of all messages joined by a blank line
	Messages                    string // [text] canonical JSON of the messages, "" for a plain prompt
	Response                    string // [text] the response as plain text
	ResponseJSON                string // [text] the response as received when it is not a plain string
	SanitizedPrompt             string // [text]
	RedactionSummary            string // [text] JSON
	RetrievedContext            string // [text] JSON array of {id, source, text}
	GroupAttributes             string // [text] JSON object of declared group attributes
	Metadata                    string // [text] JSON object
	ErrorMessage                string // [text]

	Provider, Model             string // "unknown" when absent (Incomplete is then set)
	TemplateID, TemplateVersion string
	PromptTokens                int32 // Unknown when absent
	ResponseTokens              int32 // Unknown when absent
	LatencyMS                   int32 // Unknown when absent
	CostMicroUSD                int64 // millionths of a US dollar; Unknown when absent
	SensitivityScore            string
	ContainedPII                Tristate
	ContainedProprietary        Tristate
	ContainedCustomerData       Tristate
	Status                      string // success | error | blocked: of the LLM call
	Incomplete                  bool   // a field that the record wants was absent and got a stand-in
	WithoutContent              bool   // neither prompt nor response text: never scored as clean

	PromptChars, ResponseChars uint32 // code points before any cut
	Truncated                  bool   // a text field passed the limit and is stored cut; the digest is of the whole
	// TextBytes is how much of a text is stored; 0 is all. Prompt and Response are whole here, for those who read them to judge.
	TextBytes int

	Digest [32]byte // SHA-256 of the canonical decoded event without id and transport fields
}

// Stored gives what is stored of a text: its first TextBytes bytes, cut at a code point.
func (in *Interaction) Stored(text string) string {
	if in.TextBytes == 0 {
		return text
	}
	return Clip(text, in.TextBytes)
}

// Clip cuts a text to at most n bytes without splitting a code point.
func Clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// List names values in a message: "low, high".
func List[S ~string](of []S) string {
	var b strings.Builder
	for i, s := range of {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}

// What of a name that the sender chose is told: more of it, or more digits, is a text, an account or a telephone.
const (
	maxNameBytes  = 40
	maxNameDigits = 6
)

// Shown gives a name that the sender chose in a form fit for messages and logs. Where names belong may stand texts and
// personal data, so only what looks like a name is told: a letter or _, then letters, digits, _ . and -, at most 40 of
// them and 6 digits. Of others it says how many characters they have.
func Shown(name string) string {
	digits := 0
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_':
		case i > 0 && '0' <= c && c <= '9':
			digits++
		case i > 0 && (c == '.' || c == '-'):
		default:
			return unnamed(name)
		}
	}
	if name == "" || len(name) > maxNameBytes || digits > maxNameDigits {
		return unnamed(name)
	}
	return name
}

func unnamed(name string) string {
	return "(a name of " + strconv.Itoa(utf8.RuneCountInString(name)) + " characters)"
}

// Day is the UTC day of the event, the one that keys and partitions are made of.
func (in *Interaction) Day() time.Time { return in.Time.Truncate(24 * time.Hour) }

// SortTime is the time that lists sort by: the event time, or the day's start when it was assumed,
// so that a re-send finds its row.
func (in *Interaction) SortTime() time.Time {
	if in.TimeAssumed {
		return in.Day()
	}
	return in.Time
}

// Text gives the text of one side.
func (in *Interaction) Text(s Side) string {
	if s == Input {
		return in.Prompt
	}
	return in.Response
}

// Origin says where in the log an interaction stood.
type Origin struct {
	Topic      string
	Epoch      int32 // grows each time the log was replaced
	Partition  int
	Offset     int64
	BrokerTime time.Time // LogAppendTime, UTC, whole milliseconds
}

// EventID is the id of a message that has none of its own: made of its place and broker time, so that
// the store, the dead-letter header and a replay agree on it.
func (o Origin) EventID() ID {
	return DeriveID(o.Topic, strconv.Itoa(o.Partition), strconv.FormatInt(o.Offset, 10), strconv.FormatInt(o.BrokerTime.UnixMilli(), 10))
}

// Version orders deliveries of one event in ReplacingMergeTree tables: the highest version wins, so
// it is the complement of (broker milliseconds << 20 | 20 bits of topic, partition, offset). The
// first delivery wins and ties cannot flip.
func (o Origin) Version() uint64 {
	return ^(uint64(o.BrokerTime.UnixMilli())<<20 | uint64(o.hash())&(1<<20-1))
}

// CurrentVersion is the version of a row of audit_current: the number of facts known (10 bits) above
// the complement of (milliseconds since 2020, 40 bits, and the upper 14 of Version's 20 bits of the
// place), so that more facts win and, among equals, the first delivery does: the same one as by
// Version, but for two of one millisecond whose 14 bits agree (one pair in 16384).
func (o Origin) CurrentVersion(facts int) uint64 {
	ms := uint64(max(0, o.BrokerTime.UnixMilli()-time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()))
	low := (ms&(1<<40-1))<<14 | uint64(o.hash())&(1<<20-1)>>6
	return uint64(min(facts, 1<<10-1))<<54 | (^low)&(1<<54-1)
}

// hash mixes the place with FNV-1a (Fowler, Noll, Vo) and folds the high bits down.
func (o Origin) hash() uint32 {
	h := uint64(14695981039346656037)
	add := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for i := range len(o.Topic) {
		add(o.Topic[i])
	}
	for i := range 4 {
		add(byte(o.Partition >> (8 * i)))
	}
	for i := range 8 {
		add(byte(o.Offset >> (8 * i)))
	}
	return uint32(h ^ h>>32)
}

// ValidTraceID tells whether s is a W3C trace id: 32 lower-case hexadecimal digits, not all zero.
func ValidTraceID(s string) bool { return len(s) == 32 && validHex(s) }

// ValidSpanID tells whether s is a W3C parent id: 16 lower-case hexadecimal digits, not all zero.
func ValidSpanID(s string) bool { return len(s) == 16 && validHex(s) }

func validHex(s string) bool {
	zero := true
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}

// ParseTraceparent reads a W3C traceparent header ("00-<trace>-<span>-<flags>").
func ParseTraceparent(s string) (traceID, spanID string, ok bool) {
	f := strings.Split(s, "-")
	if len(f) < 4 || len(f[0]) != 2 || f[0] == "ff" || !ValidTraceID(f[1]) || !ValidSpanID(f[2]) || len(f[3]) != 2 {
		return "", "", false
	}
	return f[1], f[2], true
}

// Package seal makes what is stored provable. While a batch is written, each interaction gets a seal: hashes
// of its row, its verdict and its texts. The seals stand in the batch's commit marker, which is signed. A row
// that is altered, deleted or added later, by whoever holds the store's password, no longer agrees with them;
// a marker that is altered no longer agrees with its signature. What comes later, [Facts], is sealed row by row in a table of its own, whose rows are a
// signed chain for each writer: [Ledger].
//
// A hash is the first eight bytes, little-endian, of the SHA-256 of columns in a canonical form that Go and the
// store's own SQL both write, so that a check hashes where the rows lie: [Hash] and [SQL]. Of one row, one
// after the other:
//
//   - text: its length in bytes as a decimal, ':', the bytes
//   - bytes of a fixed length: twice that length as a decimal, ':', upper-case hexadecimal digits
//   - a UUID: "36:" and its canonical form
//   - numbers, a day as days since 1970, a time as milliseconds since 1970: a decimal and ','
//   - a yes or no that may be neither: '1', '0' or nothing, and ','
//   - a list: its length as a decimal, ':', its elements
//
// What each kind of row begins with and which columns it takes in is fixed for a [Version] for ever.
package seal

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Version is of the forms that this program writes. A marker of version 0 has no seals.
const Version = 1

// Kind says how the values of a column are written.
type Kind uint8

// The kinds of columns.
const (
	Text Kind = iota
	Fixed
	UUID
	Number
	Day
	Time
	Texts
	Numbers
	Maybe
	Days
)

// Column is a column of a table and its kind. Width is the length of a Fixed one.
type Column struct {
	Name  string
	Kind  Kind
	Width int
}

// Form is what a hash is made of: a prefix, then columns in order.
type Form struct {
	Prefix  string
	Columns []Column
}

// The forms of version 1. Of an interaction's row are left out what an analysis that comes later may set
// (contained_pii, sensitivity_score); of a verdict when it was made, how long that took, and columns
// that only other analyzers fill; of both when they were written.
var (
	// Event names an interaction: a tenant's event with one content.
	Event = Form{"evenhand.seal.event.1\n", []Column{{Name: "tenant_id"}, {Name: "event_id", Kind: UUID}, digest}}

	Interaction = Form{"evenhand.seal.interaction.1\n", []Column{
		{Name: "tenant_id"}, {Name: "event_day", Kind: Day}, {Name: "event_id", Kind: UUID}, digest, number("version"),
		{Name: "given_id"}, number("id_assumed"), {Name: "event_ts", Kind: Time}, {Name: "sort_ts", Kind: Time}, number("time_assumed"), number("time_suspect"),
		{Name: "topic"}, number("epoch"), number("partition"), number("offset"), {Name: "broker_ts", Kind: Time},
		{Name: "trace_id", Kind: Fixed, Width: 32}, {Name: "span_id"}, {Name: "conversation"}, {Name: "decision_id"}, {Name: "app"}, {Name: "domain"}, {Name: "domain_given"},
		{Name: "provider"}, {Name: "model"}, {Name: "template_id"}, {Name: "template_version"},
		number("prompt_tokens"), number("response_tokens"), number("latency_ms"), number("cost_micro_usd"), number("contained_proprietary"), number("contained_customer_data"),
		{Name: "status"}, number("incomplete"), number("without_content"), number("prompt_chars"), number("response_chars"), number("truncated"),
	}}

	Verdict = Form{"evenhand.seal.verdict.1\n", []Column{
		{Name: "tenant_id"}, {Name: "event_day", Kind: Day}, {Name: "event_id", Kind: UUID}, {Name: "analyzer"}, {Name: "analyzer_version"}, {Name: "result_id", Kind: UUID},
		number("version"), digest, {Name: "rule_set"}, {Name: "status"}, {Name: "reason"}, {Name: "failed_by", Kind: Texts},
		number("bias_detected"), {Name: "bias_types", Kind: Texts}, number("bias_sum"), number("safety_sum"), number("threshold"), number("flagged"), number("unsafe"), number("gated"),
		{Name: "action"}, number("confidence"), number("max_severity"), {Name: "mitigation"},
		{Name: "findings.kind", Kind: Texts}, {Name: "findings.rule", Kind: Texts}, {Name: "findings.rule_version", Kind: Texts}, {Name: "findings.ground", Kind: Texts},
		{Name: "findings.severity", Kind: Numbers}, {Name: "findings.score", Kind: Numbers}, {Name: "findings.confidence", Kind: Numbers}, {Name: "findings.side", Kind: Texts},
		{Name: "findings.start", Kind: Numbers}, {Name: "findings.end", Kind: Numbers}, {Name: "findings.abusive", Kind: Numbers}, {Name: "findings.entity", Kind: Texts},
		{Name: "scores.name", Kind: Texts}, {Name: "scores.value", Kind: Numbers},
	}}

	// Marker is what a signature is of.
	Marker = Form{"evenhand.seal.marker.1\n", []Column{
		{Name: "topic"}, number("epoch"), number("partition"), number("lo"), number("hi"), number("generation"), number("rows"), number("rejected"), number("skipped"), {Name: "reason"},
		number("first_offset"), {Name: "first_ts", Kind: Time}, number("first_hash"), number("last_offset"), {Name: "last_ts", Kind: Time}, number("last_hash"), number("log_end"),
		number("seal_version"), {Name: "sealed_at", Kind: Time}, {Name: "seals.event", Kind: Numbers}, {Name: "seals.interaction", Kind: Numbers}, {Name: "seals.verdict", Kind: Numbers},
		{Name: "seals.texts", Kind: Numbers}, {Name: "signer"},
	}}

	digest = Column{Name: "content_digest", Kind: Fixed, Width: 32}
)

// Fact is the form of the rows of a table that come later than their interactions' batch; its first Key columns name a row.
type Fact struct {
	Form
	Table string
	Key   int
}

// Name is the form of what names a row.
func (f Fact) Name() Form { return Form{f.Prefix + "name\n", f.Columns[:f.Key]} }

// The forms of version 1 of what comes later. All columns are in but those that say when a row was written and into which class of retention.
var (
	Facts = [...]Fact{
		{Form{"evenhand.seal.later_verdict.1\n", slices.Concat(key(text("analyzer"), text("analyzer_version"), id("result_id")), Verdict.Columns[6:], []Column{
			{Name: "analysis_ts", Kind: Time}, number("duration_us"), {Name: "said", Kind: Texts}, {Name: "input_digest", Kind: Fixed, Width: 32},
			number("calls"), number("tokens_in"), number("tokens_out"), number("cost_micro_usd"),
		})}, "verdicts", 6},
		{Form{"evenhand.seal.review.1\n", key(id("review_id"), number("version"), digest, text("reviewer"), text("decision"), Column{Name: "tags", Kind: Texts}, Column{Name: "reviewed_at", Kind: Time})}, "reviews", 4},
		{Form{"evenhand.seal.feedback.1\n", key(id("feedback_id"), number("version"), digest, text("subject"), Column{Name: "helped", Kind: Maybe}, Column{Name: "given_at", Kind: Time})}, "feedback", 4},
		{Form{"evenhand.seal.reveal.1\n", key(id("reveal_id"), number("version"), digest, text("subject"), number("granted"), Column{Name: "revealed_at", Kind: Time})}, "reveals", 4},
		{Form{"evenhand.seal.gate.1\n", []Column{
			{Name: "tenant_id"}, {Name: "event_day", Kind: Day}, id("gate_id"), number("version"), id("event_id"),
			{Name: "rules.id", Kind: Texts}, {Name: "rules.description", Kind: Texts}, {Name: "rules.pattern", Kind: Texts}, {Name: "rules.category", Kind: Texts}, {Name: "rules.side", Kind: Texts},
			{Name: "rules.start", Kind: Numbers}, {Name: "rules.end", Kind: Numbers}, {Name: "provider"}, {Name: "method"}, {Name: "trace_id"}, {Name: "model"}, {Name: "app"}, {Name: "requester"},
			{Name: "asked_at", Kind: Time}, {Name: "opened_at", Kind: Time}, {Name: "expires_at", Kind: Time}, {Name: "state"}, {Name: "cause"}, {Name: "decided_by"}, {Name: "decided_at", Kind: Time}, id("proposal_id"),
		}}, "gates", 3},
		{Form{"evenhand.seal.later_text.1\n", key(text("kind"), Column{Name: "source_id", Kind: Fixed, Width: 32}, number("version"), text("text"))}, "interaction_texts", 5},
	}

	// Tenant and Writer name a tenant, and a writer of a ledger.
	Tenant = Form{"evenhand.seal.tenant.1\n", []Column{{Name: "tenant_id"}}}
	Writer = Form{"evenhand.seal.writer.1\n", []Column{{Name: "writer", Kind: UUID}}}

	// Ledger is the form of a row of fact_seals: what its signature is of, and what the next row's before is the SHA-256 of.
	Ledger = Form{"evenhand.seal.ledger.1\n", []Column{
		id("writer"), number("n"), number("version"), number("seal_version"), {Name: "sealed_at", Kind: Time}, number("stored"),
		{Name: "seals.object", Kind: Texts}, {Name: "seals.day", Kind: Days}, {Name: "seals.tenant", Kind: Numbers}, {Name: "seals.name", Kind: Numbers}, {Name: "seals.version", Kind: Numbers}, {Name: "seals.row", Kind: Numbers},
		{Name: "before", Kind: Fixed, Width: 32}, {Name: "signer"},
	}}
)

// Objects of a ledger's row that are no tables of facts.
const (
	Void    = "void"   // a seal whose row could not be written
	Witness = "writer" // another writer's highest number
)

func number(name string) Column { return Column{Name: name, Kind: Number} }

func text(name string) Column { return Column{Name: name} }

func id(name string) Column { return Column{Name: name, Kind: UUID} }

// key are the columns that the rows of interactions' facts begin with, and others.
func key(others ...Column) []Column {
	return append([]Column{{Name: "tenant_id"}, {Name: "event_day", Kind: Day}, {Name: "event_id", Kind: UUID}}, others...)
}

// TenantHash and WriterHash are the hashes of Tenant and Writer.
func TenantHash(tenant string) uint64    { return Hash(AppendText([]byte(Tenant.Prefix), tenant)) }
func WriterHash(writer uuid.UUID) uint64 { return Hash(AppendUUID([]byte(Writer.Prefix), writer)) }

// TextsPrefix begins what the texts of an interaction are hashed from: for each kind of text, in order of kinds,
// the kind as text and the SHA-256 of the text as fixed bytes.
const TextsPrefix = "evenhand.seal.texts.1\n"

// AppendText writes a text.
func AppendText(b []byte, s string) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
}

// AppendFixed writes bytes of a fixed width; what is missing are zeros.
func AppendFixed[T string | []byte](b []byte, s T, width int) []byte {
	const digits = "0123456789ABCDEF"
	b = append(strconv.AppendInt(b, int64(2*width), 10), ':')
	for i := range width {
		var c byte
		if i < len(s) {
			c = s[i]
		}
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}

// AppendUUID writes a UUID.
func AppendUUID(b []byte, id uuid.UUID) []byte {
	b = append(b, "36:00000000-0000-0000-0000-000000000000"...)
	s := b[len(b)-36:]
	hex.Encode(s, id[:4])
	hex.Encode(s[9:], id[4:6])
	hex.Encode(s[14:], id[6:8])
	hex.Encode(s[19:], id[8:10])
	hex.Encode(s[24:], id[10:])
	return b
}

// AppendNumber writes a number.
func AppendNumber(b []byte, n int64) []byte { return append(strconv.AppendInt(b, n, 10), ',') }

// AppendUnsigned writes a number.
func AppendUnsigned(b []byte, n uint64) []byte { return append(strconv.AppendUint(b, n, 10), ',') }

// AppendDay writes a day.
func AppendDay(b []byte, t time.Time) []byte { return AppendNumber(b, t.Unix()/86400) }

// AppendMaybe writes a yes or no; nil is neither.
func AppendMaybe(b []byte, is *bool) []byte {
	switch {
	case is == nil:
	case *is:
		b = append(b, '1')
	default:
		b = append(b, '0')
	}
	return append(b, ',')
}

// AppendDays writes a list of days.
func AppendDays(b []byte, days []time.Time) []byte {
	b = appendLength(b, len(days))
	for _, d := range days {
		b = AppendDay(b, d)
	}
	return b
}

// AppendTexts writes a list of texts.
func AppendTexts(b []byte, ss []string) []byte {
	b = appendLength(b, len(ss))
	for _, s := range ss {
		b = AppendText(b, s)
	}
	return b
}

// AppendNumbers writes a list of numbers.
func AppendNumbers[N int64 | int32 | uint8 | uint32 | uint64](b []byte, ns []N) []byte {
	b = appendLength(b, len(ns))
	for _, n := range ns {
		if n < 0 {
			b = AppendNumber(b, int64(n))
		} else {
			b = AppendUnsigned(b, uint64(n))
		}
	}
	return b
}

func appendLength(b []byte, n int) []byte { return append(strconv.AppendInt(b, int64(n), 10), ':') }

// Hash is that of a canonical form.
func Hash(form []byte) uint64 {
	sum := sha256.Sum256(form)
	return binary.LittleEndian.Uint64(sum[:8])
}

// SQL is the expression of a form's hash; rename gives columns that are called otherwise, nil for none.
func (f Form) SQL(rename map[string]string) string {
	return "reinterpretAsUInt64(substring(SHA256(" + f.canonical(rename) + "), 1, 8))"
}

// DigestSQL is the expression of the whole SHA-256 of a form.
func (f Form) DigestSQL() string { return "SHA256(" + f.canonical(nil) + ")" }

func (f Form) canonical(rename map[string]string) string {
	parts := []string{quoted(f.Prefix)}
	for _, c := range f.Columns {
		x := "`" + c.Name + "`"
		if as, ok := rename[c.Name]; ok {
			x = as
		}
		parts = append(parts, c.sql(x))
	}
	return "concat(" + strings.Join(parts, ", ") + ")"
}

// MadeAgain are the kinds of texts that a seal leaves out: a later analysis may make them again.
var MadeAgain = [...]string{"sanitized_prompt", "redaction_summary"}

// SealedSQL is the condition that a seal takes in a text of column kind.
func SealedSQL() string { return "kind NOT IN ('" + strings.Join(MadeAgain[:], "', '") + "')" }

// TextsSQL is the expression of the hash of texts, over the rows of one interaction with columns kind and text.
func TextsSQL() string {
	each := "arraySort(groupArray((kind, hex(SHA256(text)))))"
	list := "arrayStringConcat(arrayMap(x -> concat(toString(length(x.1)), ':', x.1, '64:', x.2), " + each + "))"
	return "reinterpretAsUInt64(substring(SHA256(concat(" + quoted(TextsPrefix) + ", " + list + ")), 1, 8))"
}

// NoTexts is the hash of an interaction without texts.
var NoTexts = Hash([]byte(TextsPrefix))

func (c Column) sql(x string) string {
	switch c.Kind {
	case Fixed:
		return "'" + strconv.Itoa(2*c.Width) + ":', hex(" + x + ")"
	case UUID:
		return "'36:', toString(" + x + ")"
	case Number:
		return "toString(" + x + "), ','"
	case Day:
		return "toString(toUInt16(" + x + ")), ','"
	case Time:
		return "toString(toUnixTimestamp64Milli(" + x + ")), ','"
	case Texts:
		return "toString(length(" + x + ")), ':', arrayStringConcat(arrayMap(x -> concat(toString(length(x)), ':', x), CAST(" + x + " AS Array(String))))"
	case Maybe:
		return "ifNull(toString(toUInt8(" + x + ")), ''), ','"
	case Days:
		return "toString(length(" + x + ")), ':', arrayStringConcat(arrayMap(x -> concat(toString(toUInt16(x)), ','), " + x + "))"
	case Numbers:
		return "toString(length(" + x + ")), ':', arrayStringConcat(arrayMap(x -> concat(toString(x), ','), " + x + "))"
	default:
		return "toString(length(" + x + ")), ':', " + x
	}
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "\n", `\n`) + "'" }

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/join"
	"github.com/evenhand/evenhand/store"
)

type dlqCmd struct {
	List   dlqListCmd   `cmd:"" help:"List messages that could not become interactions or requests to the judge, and count them by reason."`
	Show   dlqShowCmd   `cmd:"" help:"Show one of them."`
	Replay dlqReplayCmd `cmd:"" help:"Send them again, once what was wrong is mended."`
}

// dlqFlags choose rejected messages.
type dlqFlags struct {
	Reason []string `help:"Only this reason, such as tenant_missing; repeatable. docs/events.md lists them." placeholder:"CODE"`
	Tenant string   `help:"Only this tenant." placeholder:"NAME"`
	Since  string   `help:"Only what came since: an age such as 24h or 7d, a day or an RFC 3339 time." placeholder:"WHEN"`
}

func (f dlqFlags) filter(now time.Time) (store.RejectedFilter, error) {
	since, err := parseSince(f.Since, now)
	return store.RejectedFilter{Reasons: f.Reason, Tenant: f.Tenant, Since: since}, err
}

// knownReasons are those of docs/events.md.
var knownReasons = []string{
	ingest.BadJSON, ingest.InvalidUTF8, ingest.TooDeep, ingest.TooLarge, ingest.DuplicateKey, ingest.UnknownField, ingest.WrongType, ingest.BadValue,
	ingest.MissingField, ingest.AliasConflict, ingest.EventTime, ingest.TenantMissing, ingest.TenantMismatch, join.BadFormat, ingest.NoInteraction,
	"store_refused", "judge_request", "judge_error",
}

// known holds that there are such reasons: of this version, or in the store, of whatever version.
func (f dlqFlags) known(ctx context.Context, st *store.Store) error {
	reasons := slices.Clone(knownReasons)
	unknown := func(r string) bool { return !slices.Contains(reasons, r) }
	if !slices.ContainsFunc(f.Reason, unknown) {
		return nil
	}
	there, err := st.RejectedCounts(ctx, store.RejectedFilter{})
	if err != nil {
		return err
	}
	for _, c := range there {
		if unknown(c.Reason) {
			reasons = append(reasons, c.Reason)
		}
	}
	if i := slices.IndexFunc(f.Reason, unknown); i >= 0 {
		return &settingsError{fmt.Errorf("--reason: %q is not one of %s", f.Reason[i], strings.Join(reasons, ", "))}
	}
	return nil
}

// parseSince reads an age, a day or a time; "" is the beginning.
func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := age(s); err == nil && d > 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, &settingsError{fmt.Errorf("--since: %q is not an age such as 24h or 7d, a day such as 2026-11-21 or an RFC 3339 time", s)}
}

// parsePlace reads TOPIC/PARTITION/OFFSET; without a topic it is the interactions'.
func parsePlace(s string) (store.RejectedPlace, error) {
	p, rest := store.RejectedPlace{Topic: kafkaconn.Interactions}, s
	if strings.Count(s, "/") > 1 {
		p.Topic, rest, _ = strings.Cut(s, "/")
	}
	part, offset, _ := strings.Cut(rest, "/")
	n, err := strconv.ParseInt(part, 10, 32)
	o, oerr := strconv.ParseInt(offset, 10, 64)
	if err != nil || oerr != nil || n < 0 || o < 0 || p.Topic == "" {
		return p, &settingsError{fmt.Errorf("%q is not TOPIC/PARTITION/OFFSET, such as %s/0/17", s, kafkaconn.Interactions)}
	}
	p.Partition, p.Offset = int32(n), o
	return p, nil
}

type dlqListCmd struct {
	storeFlags
	dlqFlags
	Limit int  `help:"Messages to list, the newest first; 0 only counts." default:"20"`
	JSON  bool `help:"Print JSON." name:"json"`
}

func (dlqListCmd) Help() string {
	return `Details name what is wrong with a message and never quote it.

Examples:
  evenhand dlq list --since 24h
  evenhand dlq list --reason tenant_missing --json`
}

// Run lists rejected messages.
func (cmd *dlqListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	f, err := cmd.filter(time.Now())
	if err != nil {
		return err
	}
	if cmd.Limit < 0 || cmd.Limit > 100_000 {
		return &settingsError{fmt.Errorf("--limit: %d is not in 0..100000", cmd.Limit)}
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	st := store.New(conn, s.ClickHouse.Database)
	if err := cmd.known(ctx, st); err != nil {
		return err
	}
	counts, err := st.RejectedCounts(ctx, f)
	if err != nil {
		return err
	}
	var rows []store.Rejected
	if cmd.Limit > 0 {
		if rows, err = st.Rejected(ctx, f, cmd.Limit); err != nil {
			return err
		}
	}
	if cmd.JSON {
		total := uint64(0)
		for _, c := range counts {
			total += c.Count
		}
		return printJSON(std.out, map[string]any{"total": total, "reasons": orEmpty(counts), "messages": orEmpty(rows)})
	}
	printRejected(std.out, counts, rows)
	return nil
}

func printJSON(out io.Writer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func printRejected(out io.Writer, counts []store.RejectedCount, rows []store.Rejected) {
	if len(counts) == 0 {
		fmt.Fprintln(out, "Nothing was rejected.")
		return
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "REASON\tMESSAGES\tFIRST\tLAST")
	for _, c := range counts {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", c.Reason, c.Count, c.First.Format(time.RFC3339), c.Last.Format(time.RFC3339))
	}
	_ = t.Flush()
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(out)
	fmt.Fprintln(t, "TIME\tPLACE\tTENANT\tBYTES\tREASON\tDETAIL")
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", r.Time.Format(time.RFC3339), placeOf(r), inLine(orDash(r.Tenant)), r.Bytes, r.Reason, inLine(cut(r.Detail, 100)))
	}
	_ = t.Flush()
}

func placeOf(r *store.Rejected) store.RejectedPlace {
	return store.RejectedPlace{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

type dlqShowCmd struct {
	storeFlags
	Place   string `arg:"" help:"TOPIC/PARTITION/OFFSET, as list prints it; PARTITION/OFFSET of llm.interactions."`
	Payload bool   `help:"Print the message too: key, headers and value, with all the text of people in it."`
	JSON    bool   `help:"Print JSON." name:"json"`
}

func (dlqShowCmd) Help() string {
	return `Prints why a message was rejected. Its text only with --payload, while retention keeps it.

Examples:
  evenhand dlq show llm.interactions/3/17
  evenhand dlq show 3/17 --payload`
}

// shownRejected is one message as show prints it.
type shownRejected struct {
	store.Rejected
	EventID   string           `json:"event_id"` // of an event without one
	TextState store.TextState  `json:"text"`
	Message   *rejectedMessage `json:"message,omitempty"`
}

type rejectedMessage struct {
	Key     payload           `json:"key"`
	Headers []rejectedHeaders `json:"headers"`
	Value   payload           `json:"value"`
}

type rejectedHeaders struct {
	Key   string  `json:"key"`
	Value payload `json:"value"`
}

// payload is bytes that print as text where they are text, else as base64 in an object.
type payload []byte

func (p payload) MarshalJSON() ([]byte, error) {
	if utf8.Valid(p) {
		return json.Marshal(string(p))
	}
	return json.Marshal(map[string][]byte{"base64": p})
}

func (p payload) String() string {
	if utf8.Valid(p) {
		return string(p)
	}
	return strconv.Quote(string(p))
}

// Run shows the messages of one place: a replaced log may have left two.
func (cmd *dlqShowCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	place, err := parsePlace(cmd.Place)
	if err != nil {
		return err
	}
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	st := store.New(conn, s.ClickHouse.Database)
	rows, err := st.Rejected(ctx, store.RejectedFilter{Places: []store.RejectedPlace{place}}, 10)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return fmt.Errorf("no message was rejected at %s; 'evenhand dlq list' shows all", place)
	}
	messages, err := st.RejectedMessages(ctx, rows)
	if err != nil {
		return err
	}
	for i := range rows {
		x := shown(&rows[i], messages[i], cmd.Payload)
		if cmd.JSON {
			err = printJSON(std.out, x)
		} else {
			err = x.print(std.out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func shown(r *store.Rejected, m *audit.Rejected, withPayload bool) shownRejected {
	x := shownRejected{Rejected: *r, EventID: r.EventID.String(), TextState: store.TextPresent}
	if m == nil {
		x.TextState = store.TextDropped
	} else if withPayload {
		x.Message = &rejectedMessage{Key: m.Key, Value: m.Value, Headers: []rejectedHeaders{}}
		for _, h := range m.Header {
			x.Message.Headers = append(x.Message.Headers, rejectedHeaders{h.Key, h.Value})
		}
	}
	return x
}

func (x *shownRejected) print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name string, v any) { fmt.Fprintf(t, "%s\t%v\n", name, v) }
	line("place", placeOf(&x.Rejected))
	if x.Epoch > 0 {
		line("epoch", x.Epoch)
	}
	line("time", x.Time.Format(time.RFC3339Nano))
	line("tenant", inLine(orDash(x.Tenant)))
	line("reason", x.Reason)
	line("detail", inLine(x.Detail))
	line("bytes", x.Bytes)
	line("id without one", x.EventID)
	line("text", x.TextState)
	if err := errors.Join(t.Flush()); err != nil || x.Message == nil {
		return err
	}
	fmt.Fprintf(out, "key     %s\n", x.Message.Key)
	for _, h := range x.Message.Headers {
		fmt.Fprintf(out, "header  %s: %s\n", h.Key, h.Value)
	}
	_, err := fmt.Fprintf(out, "\n%s\n", x.Message.Value)
	return err
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/internal/wait"
	"github.com/evenhand/evenhand/sources"
)

type emitCmd struct {
	File      string   `arg:"" optional:"" help:"NDJSON, JSON (an array, or pretty-printed objects) or CSV file, gzip too; - or nothing reads stdin." default:"-"`
	Format    string   `help:"Format of the input: auto (by name, then content), ndjson, json, csv." enum:"auto,ndjson,json,csv" default:"auto"`
	Delimiter string   `help:"What stands between the columns of a table: one character, or tab; found by the first line when not given." placeholder:"CHAR"`
	Map       []string `help:"Field of the input (a.b is b within a) that becomes a field of the event, or metadata.NAME; repeatable. Both must exist: in some line, in the event." placeholder:"FROM=TO" sep:"none"`
	Field     []string `help:"Value for a field that the input does not have; repeatable." placeholder:"NAME=VALUE" sep:"none"`
	Tenant    string   `help:"Tenant of events that name none." placeholder:"NAME"`
	Domain    string   `help:"Domain of events that name none: general, hr, finance, healthcare, education." placeholder:"DOMAIN"`
	App       string   `help:"Application of events that name none." placeholder:"NAME"`
	To        string   `help:"Send over HTTP to this address instead of Kafka." placeholder:"URL"`
	Token     string   `help:"File that holds a token or API key for --to; else EVENHAND_TOKEN, else http.api_key." name:"token-file" placeholder:"FILE" env:"EVENHAND_TOKEN_FILE"`
	DataDir   string   `help:"Find the running 'evenhand up' of this data folder." placeholder:"DIR"`
	Batch     int      `help:"Events a request, in at most 9 MB." default:"500"`
	Resume    string   `help:"Remember progress here and go on from it (default: .NAME.emit beside the file)." placeholder:"FILE"`
	Restart   bool     `help:"Forget remembered progress and send all."`
	Quiet     bool     `help:"No progress." short:"q"`
}

func (emitCmd) Help() string {
	return `Where to: --to URL, else the running 'evenhand up', else kafka.brokers. Every line is checked first; a bad line, or one
of more than 899,700 bytes or than the topic's max.message.bytes, is named, not sent, and the exit status is 3.

Without --map a field that the event does not have is refused. With it, such fields go under metadata, but for names that
look like a mistyped field of the event: map those to it, or keep them with --map NAME=metadata.NAME. The first line of a table names its columns.

An interrupted run goes on where it stopped, and lines without an id get the same one again; lines may have been added behind, but
where the lines done are others now, or the receiver is another, it stops and says so. A run that was done is forgotten: sending
the file once more sends those lines as new events. Give lines an id where that should not be; without, mend bad lines and
send them alone.

Examples:
  evenhand emit examples/interactions.jsonl
  evenhand emit texts.csv --map text=response --field provider=openai --domain hr
  evenhand emit log.jsonl.gz --map req.prompt=prompt --map res.text=response
  cat log.ndjson | evenhand emit --to http://127.0.0.1:8787
  EVENHAND_TOKEN=$(evenhand token --tenant acme --role service) evenhand emit log.ndjson --to http://127.0.0.1:8787`
}

// resumeState is what a resume file holds.
type resumeState struct {
	Seed  string    `json:"seed"`  // of ids for lines without one
	Begun time.Time `json:"begun"` // time of lines that tell none
	Lines int       `json:"lines"` // acknowledged
	Rows  string    `json:"rows"`  // digest of those lines; programs of before 29 November 2026 noted neither it nor
	To    string    `json:"to"`    // the place of the receiver
}

// sender sends a batch and returns after it is acknowledged: how many events were, and which lines the receiver will never take.
type sender interface {
	send(ctx context.Context, batch []event) (sent int, refused []refusal, err error)
	to() string
	place() string // what is the same receiver in another run
	close() error
}

// refusal says why a line cannot be sent.
type refusal struct {
	line int
	err  error
}

// event is one checked line, ready to send.
type event struct {
	line   int
	id     string
	given  bool   // the id, by the line
	tenant string // as the line names it; "" leaves it to the receiver
	value  []byte
	timed  bool // it tells its time, by itself or by its id
}

// Run emits the input.
func (cmd *emitCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+cmd.DataDir)
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	if cmd.Batch < 1 || cmd.Batch > 10_000 {
		return &settingsError{fmt.Errorf("--batch: %d is not in 1..10000", cmd.Batch)}
	}
	if cmd.Domain != "" && !audit.Domain(cmd.Domain).Known() {
		return &settingsError{fmt.Errorf("--domain: %q is not one of %s", cmd.Domain, domainNames())}
	}
	fields, err := newMapping(cmd.Map, cmd.Field)
	if err != nil {
		return err
	}
	if _, err := parseDelimiter(cmd.Delimiter); err != nil {
		return err
	}
	in, size, closeIn, err := cmd.open(ctx, std)
	if err != nil {
		return err
	}
	defer closeIn()
	state, path, err := cmd.progress()
	if err != nil {
		return err
	}
	out, err := cmd.sender(s, state.Begun)
	if err != nil {
		return err
	}
	defer func() { _ = out.close() }()
	if state.Lines == 0 || state.To == "" { // nothing to go on from, wherever it was to go; or nobody noted where
		state.To = out.place()
	} else if state.To != out.place() {
		return fmt.Errorf("%s is of a run that sends to %s and stopped after line %d: finish that first, send all lines here with --restart, or remember this run elsewhere with --resume FILE",
			path, state.To, state.Lines)
	}

	counted := &countingReader{r: in}
	rows, err := openRows(counted, cmd.form(fields))
	if err != nil {
		return err
	}
	if err := fields.ahead(rows, cmd); err != nil {
		return err
	}
	if s.Tenant.Default == "" {
		s.Tenant.Default = "default" // the receiver decides; here it only lets the line pass the check
	}
	decoder := s.decoder()
	decoder.Limits.Message = min(maxLine, cmp.Or(decoder.Limits.Message, maxLine))
	check := ingest.NewDecoder(decoder)
	bar := newProgress(std.err, size, cmd.Quiet)
	if k, ok := out.(*kafkaSender); ok && !cmd.Quiet {
		k.say = bar.say
	}
	if t, ok := rows.(*csvRows); ok && t.c.Comma != ',' && cmd.Delimiter == "" && !cmd.Quiet {
		bar.say(fmt.Sprintf("columns are separated by %q; --delimiter names another", t.c.Comma))
	}
	run := &emitRun{cmd: cmd, out: out, state: state, known: state.Lines == 0, path: path, bar: bar, errw: std.err, fields: fields}
	err = run.all(ctx, rows, check, counted)
	bar.done()
	if t, ok := rows.(*csvRows); ok {
		run.empty = t.empty
	}
	return run.report(std, err)
}

// Bytes of one event, so that key and headers fit beside it on every way, and of a batch that is sent at once, whatever
// --batch says: doors take 16 MiB a request.
const (
	maxLine  = kafkaconn.MaxMessage - 300
	maxBatch = 8 << 20
)

// emitRun is one run's progress.
type emitRun struct {
	cmd       *emitCmd
	out       sender
	state     resumeState
	known     bool // the lines done before are those of the input
	path      string
	bar       *progress
	errw      io.Writer
	fields    *mapping
	sent, bad int
	skipped   int
	last      int // last line read
	read      int // rows
	empty     int // rows without a value, passed over
	nameless  int // of those checked well, without an id
}

func (r *emitRun) all(ctx context.Context, rows rowReader, check *ingest.Decoder, counted *countingReader) error {
	var batch []event
	var size int // of the batch
	flush := func() error {
		if len(batch) > 0 {
			sent, refused, err := r.out.send(ctx, batch)
			r.sent += sent
			for _, x := range refused {
				r.refuse(x.line, x.err)
			}
			if err != nil {
				return err
			}
			batch, size = batch[:0], 0
		}
		if r.last > r.state.Lines { // else the input ended with what was done before
			r.state.Lines, r.state.Rows = r.last, rows.digest()
		}
		return r.save()
	}
	// Before the first event: a run that is killed must find the seed of its ids again.
	if err := r.save(); err != nil && r.cmd.Resume == "" {
		r.bar.say(err.Error())
		r.path = ""
	} else if err != nil {
		return err
	}
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		row, line, err := rows.next()
		if !r.known && (errors.Is(err, io.EOF) || line > r.state.Lines) {
			return r.otherInput()
		}
		if errors.Is(err, io.EOF) {
			if fault := r.fields.fault(); fault != nil && r.sent == 0 {
				return fault
			} else if err := flush(); err != nil {
				return err
			} else {
				return fault
			}
		}
		var bad *rowError
		if err != nil && !errors.As(err, &bad) {
			return errors.Join(flush(), err)
		}
		if bad == nil {
			r.fields.look(row)
		}
		r.last, r.read = line, r.read+1
		if line <= r.state.Lines {
			r.known = line == r.state.Lines && (r.state.Rows == "" || rows.digest() == r.state.Rows)
			r.skipped++
			continue
		}
		if bad == nil {
			var ev event
			if ev, err = r.event(row, line, check); err == nil {
				batch, size = append(batch, ev), size+len(ev.value)
				if !ev.given {
					r.nameless++
				}
			}
		}
		if err != nil {
			r.refuse(line, err)
		}
		if bad != nil {
			r.bad += bad.more
		}
		if len(batch) >= r.cmd.Batch || size >= maxBatch {
			if err := flush(); err != nil {
				return err
			}
		}
		r.bar.set(r.sent+len(batch), counted.n.Load())
	}
}

// otherInput says that the lines done before are not those of the input: to go on behind them would leave out others.
func (r *emitRun) otherInput() error {
	return fmt.Errorf("%s is of a run that stopped after line %d of an input that began otherwise: send all lines of this one with --restart, or bring the former back", r.path, r.state.Lines)
}

// refuse names a line that is not sent; of many the first ones.
func (r *emitRun) refuse(line int, err error) {
	if r.bad++; r.bad <= 20 {
		r.bar.say(fmt.Sprintf("line %d: %v", line, err))
	}
}

func (r *emitRun) save() error {
	if r.path == "" {
		return nil
	}
	return saveProgress(r.path, r.state)
}

// saveProgress writes what a run that is broken off goes on from.
func saveProgress(path string, state any) error {
	b, err := json.Marshal(state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return fmt.Errorf("cannot remember progress: %w; name a file that can be written with --resume", err)
	}
	return os.Rename(path+".tmp", path)
}

func (r *emitRun) report(std *stdio, err error) error {
	took := r.bar.elapsed()
	fmt.Fprintf(std.err, "%d sent to %s in %.1f s (%.0f a second)", r.sent, r.out.to(), took.Seconds(), float64(r.sent)/max(took.Seconds(), 1e-3))
	if r.skipped > 0 {
		fmt.Fprintf(std.err, ", %d lines done before", r.skipped)
	}
	if r.bad > 0 {
		fmt.Fprintf(std.err, ", %s not sent", count(r.bad, "bad line"))
	}
	if r.empty > 0 {
		fmt.Fprintf(std.err, ", %s passed over", count(r.empty, "empty row"))
	}
	if r.read == 0 && err == nil {
		fmt.Fprint(std.err, ": the input has no rows")
	}
	fmt.Fprintln(std.err)
	if err != nil {
		if r.path != "" && r.known {
			fmt.Fprintf(std.err, "Run the same command again to go on after line %d.\n", r.state.Lines)
		}
		return err
	}
	if r.path != "" {
		_ = os.Remove(r.path) // all is sent: nothing to go on from
	}
	if r.bad > 0 {
		fmt.Fprintln(std.err, r.mend())
		return exitCode(3)
	}
	return nil
}

// mend says what to do about bad lines.
func (r *emitRun) mend() string {
	if r.nameless > 0 {
		return "Mend the bad lines and send them alone: the whole input once more sends the others that have no id as new events."
	}
	return "Mend the bad lines and send them, or the whole input once more: what was sent with an id is known by it."
}

func (cmd *emitCmd) open(ctx context.Context, std *stdio) (in io.Reader, size int64, closeIn func(), err error) {
	if cmd.File == "-" {
		return std.input(ctx, "interactions (one JSON object a line)"), 0, func() {}, nil
	}
	f, err := os.Open(cmd.File)
	if err != nil {
		return nil, 0, nil, err
	}
	if st, err := f.Stat(); err == nil {
		size = st.Size()
	}
	return f, size, func() { _ = f.Close() }, nil
}

// progress reads the resume file, or begins a new state.
func (cmd *emitCmd) progress() (resumeState, string, error) {
	path := cmd.Resume
	if path == "" && cmd.File != "-" {
		path = filepath.Join(filepath.Dir(cmd.File), "."+filepath.Base(cmd.File)+".emit")
	}
	fresh := resumeState{Seed: rand.Text(), Begun: time.Now().UTC().Truncate(time.Millisecond)}
	if path == "" || cmd.Restart {
		return fresh, path, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return fresh, path, nil
	} else if err != nil {
		return fresh, "", fmt.Errorf("--resume: %w", err)
	}
	var st resumeState
	if err := json.Unmarshal(b, &st); err != nil || st.Seed == "" {
		return fresh, "", fmt.Errorf("--resume: %s is not a resume file; delete it or use --restart", path)
	}
	return st, path, nil
}

// form is how the input is read.
func (cmd *emitCmd) form(fields *mapping) inputForm {
	return inputForm{name: cmd.File, format: cmd.Format, delimiter: cmd.Delimiter, column: func(name string) bool {
		_, wanted := fields.to[name]
		return wanted || ingest.KnownField(name)
	}}
}

// event maps, completes and checks one row.
func (r *emitRun) event(row map[string]any, line int, check *ingest.Decoder) (event, error) {
	if err := r.fields.apply(row, map[string]string{"tenant_id": r.cmd.Tenant, "domain": r.cmd.Domain, "application": r.cmd.App}); err != nil {
		return event{}, err
	}
	noID, untimed := absent(row["id"]), absent(row["timestamp"])
	if noID {
		if delete(row, "id"); untimed {
			delete(row, "timestamp")
		}
	}
	value, err := encoded(row)
	if err != nil {
		return event{}, err
	}
	if noID {
		// With its content, so that no other line ever has the id of one that was sent.
		head := fmt.Sprintf(`{"id":"%s"`, audit.DeriveID("emit", r.state.Seed, fmt.Sprint(line), string(value)))
		if untimed { // who sends the line in another run sends another event
			head += fmt.Sprintf(`,"timestamp":"%s"`, r.state.Begun.Format(timeFormat))
		}
		if len(row) > 0 {
			head += ","
		}
		value = append([]byte(head), value[1:]...)
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	in, rej := check.Decode(sources.Record{Time: now, Value: value}, audit.Origin{Topic: "emit", BrokerTime: now})
	if rej != nil {
		return event{}, fmt.Errorf("%s: %s", rej.Reason, rej.Detail)
	}
	return event{line: line, id: in.ID.String(), given: !noID, tenant: text(row["tenant_id"]), value: value, timed: !in.TimeAssumed}, nil
}

// encoded is a row as JSON.
func encoded(row map[string]any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // <, > and & would have six bytes each
	if err := enc.Encode(row); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// sender connects nothing yet. begun goes with events that tell no time.
func (cmd *emitCmd) sender(s settings, begun time.Time) (sender, error) {
	if u, err := url.Parse(cmd.To); cmd.To != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return nil, &settingsError{fmt.Errorf("--to: %q is no address such as http://127.0.0.1:8787", cmd.To)}
	}
	if cmd.To != "" {
		credential, bound, err := credentialOf(s, cmd.Token)
		if err != nil {
			return nil, err
		}
		return &httpSender{base: strings.TrimSuffix(cmd.To, "/"), key: credential, bound: bound, client: &http.Client{Timeout: 60 * time.Second}}, nil
	}
	place := strings.Join(s.Kafka.Brokers, ",")
	if len(s.Kafka.Brokers) == 0 {
		r, ok := findRunning(s.DataDir)
		if !ok {
			return nil, notUp(s.DataDir, "name another address with --to URL, or set kafka.brokers")
		}
		s.Kafka.Brokers = []string{r.Kafka}
		place = s.DataDir // its ports may be others after a restart, and those of another folder's later
		if abs, err := filepath.Abs(place); err == nil {
			place = abs
		}
	}
	p, err := kafkaconn.NewProducer(s.kafka(), kafkaconn.DefaultProducerOptions())
	if err != nil {
		return nil, err
	}
	return &kafkaSender{p: p, brokers: strings.Join(s.Kafka.Brokers, ","), at: place, begun: begun}, nil
}

type kafkaSender struct {
	p       *kafkaconn.Producer
	brokers string
	at      string // the data folder of what was found running, else the brokers
	begun   time.Time
	say     func(string) // tells why nothing moves; nil says nothing
}

func (k *kafkaSender) to() string    { return k.brokers }
func (k *kafkaSender) place() string { return k.at }

// close gives up what a broker that takes nothing still has: it was not acknowledged, so it is sent again.
func (k *kafkaSender) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return k.p.Close(ctx)
}

// send waits and sends again while the broker is full: what was taken before folds in the store.
func (k *kafkaSender) send(ctx context.Context, batch []event) (sent int, refused []refusal, err error) {
	ms := make([]kafka.Message, len(batch))
	for i, e := range batch {
		ms[i] = kafka.Message{Topic: kafkaconn.Interactions, Key: []byte(e.id), Value: e.value}
		if !e.timed { // beside the event: in it, a run that sends the line again would send other content
			ms[i].Headers = []kafka.Header{{Key: ingest.HeaderEventTime, Value: []byte(k.begun.Format(timeFormat))}}
		}
	}
	for told := false; ; told = true {
		err := k.p.Produce(ctx, ms)
		if err == nil {
			return sent + len(ms), refused, nil
		}
		var each kafkaconn.MessageErrors
		if errors.As(err, &each) {
			var again []kafka.Message
			var rest []event
			for i, err := range each {
				var large *kafkaconn.TooLargeError
				switch {
				case err == nil:
					sent++
				case errors.As(err, &large):
					refused = append(refused, refusal{batch[i].line, large})
				default:
					again, rest = append(again, ms[i]), append(rest, batch[i])
				}
			}
			if ms, batch = again, rest; len(ms) == 0 {
				return sent, refused, nil
			}
		}
		if audit.KindOf(err) != audit.KindOverloaded {
			return sent, refused, err
		}
		if !told && k.say != nil {
			k.say("waiting: " + k.brokers + " takes nothing at the moment (full? see its log and broker.cap_mb)")
		}
		if !wait.For(ctx, time.Second) {
			return sent, refused, ctx.Err()
		}
	}
}

type httpSender struct {
	base   string
	key    secret.Text
	bound  bool // the key is of one tenant
	client *http.Client
}

// credentialOf is what a command shows to the doors: a token or API key out of a file or EVENHAND_TOKEN,
// which are bound to a tenant, else http.api_key, which is not.
func credentialOf(s settings, file string) (credential secret.Text, bound bool, err error) {
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return "", false, fmt.Errorf("--token-file: %w", err)
		}
		return secret.Text(strings.TrimSpace(string(b))), true, nil
	}
	if t := strings.TrimSpace(os.Getenv("EVENHAND_TOKEN")); t != "" {
		return secret.Text(t), true, nil
	}
	return s.HTTP.APIKey, false, nil
}

func (h *httpSender) to() string    { return h.base }
func (h *httpSender) place() string { return h.base }
func (h *httpSender) close() error  { h.client.CloseIdleConnections(); return nil }

// send posts NDJSON: at once, but with the key that is bound to no tenant in a request for each of the
// batch's tenants, which then stands in the header.
func (h *httpSender) send(ctx context.Context, batch []event) (sent int, refused []refusal, err error) {
	if h.bound || h.key == "" {
		return h.halve(ctx, "", batch)
	}
	for len(batch) > 0 {
		tenant := batch[0].tenant
		var same, others []event
		for _, e := range batch {
			if e.tenant == tenant {
				same = append(same, e)
			} else {
				others = append(others, e)
			}
		}
		n, bad, err := h.halve(ctx, tenant, same)
		sent, refused = sent+n, append(refused, bad...)
		if err != nil {
			return sent, refused, err
		}
		batch = others
	}
	return sent, refused, nil
}

// halve posts events, and where they are too large for the receiver their halves, until the line stands alone that is.
// What a refused request had sent already folds in the store.
func (h *httpSender) halve(ctx context.Context, tenant string, batch []event) (sent int, refused []refusal, err error) {
	err = h.post(ctx, tenant, batch)
	switch {
	case err == nil:
		return len(batch), nil, nil
	case !errors.Is(err, errTooLarge):
		return 0, nil, err
	case len(batch) == 1:
		return 0, []refusal{{batch[0].line, fmt.Errorf("%d bytes: %w", len(batch[0].value), err)}}, nil
	}
	for _, half := range [][]event{batch[:len(batch)/2], batch[len(batch)/2:]} {
		n, bad, err := h.halve(ctx, tenant, half)
		sent, refused = sent+n, append(refused, bad...)
		if err != nil {
			return sent, refused, err
		}
	}
	return sent, refused, nil
}

// errTooLarge is an answer of status 413.
var errTooLarge = errors.New("the receiver takes no event of this size")

// post sends one request; when told to slow down it waits as long as it is asked to.
func (h *httpSender) post(ctx context.Context, tenant string, batch []event) error {
	var body bytes.Buffer
	for _, e := range batch {
		body.Write(e.value)
		body.WriteByte('\n')
	}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.base+"/v1/interactions", bytes.NewReader(body.Bytes()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		if h.key != "" {
			req.Header.Set("Authorization", "Bearer "+h.key.Reveal())
		}
		if tenant != "" {
			req.Header.Set(auth.TenantHeader, tenant)
		}
		res, err := h.client.Do(req)
		if err != nil {
			return err
		}
		answer, _ := io.ReadAll(io.LimitReader(res.Body, 4096))
		_ = res.Body.Close()
		switch res.StatusCode {
		case http.StatusAccepted:
			return nil
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			if !wait.For(ctx, retryAfter(res)) {
				return ctx.Err()
			}
		case http.StatusRequestEntityTooLarge:
			return fmt.Errorf("%w: %s answered %s: %s", errTooLarge, h.base, res.Status, strings.TrimSpace(string(answer)))
		default:
			return fmt.Errorf("%s answered %s: %s", h.base, res.Status, strings.TrimSpace(string(answer)))
		}
	}
}

func retryAfter(res *http.Response) time.Duration {
	if d, err := time.ParseDuration(res.Header.Get("Retry-After") + "s"); err == nil && d > 0 {
		return min(d, time.Minute)
	}
	return time.Second
}

package remediation

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

const (
	maxDelivery    = 1 << 20          // bytes of a webhook's body
	deliveryWindow = time.Minute      // by which a delivery's time may be off
	answerWithin   = 4 * time.Second  // Linear gives up after 5 s and delivers again later
	longestActor   = 100              // characters of the name of who did it
	slowestBody    = 10 * time.Second // of a client that sends slowly
)

// Delivery is what a webhook of Linear tells, as far as it is used: which issue changed. What became of
// it is read from Linear itself.
type Delivery struct {
	Action string
	Type   string
	At     time.Time // webhookTimestamp
	ID     audit.ID  // of the thing that changed, zero when it is no UUID
	State  string    // type of the issue's state, as the delivery has it
	By     string    // who moved the issue to another state; "" when the delivery tells of something else, or not who
}

var (
	errSignature = errors.New("the signature is wrong")
	errOld       = errors.New("the time is more than a minute off")
	errForm      = errors.New("not a webhook of Linear")
)

// readDelivery checks a body against its signature (the hexadecimal HMAC-SHA256 of the raw bytes) and the
// clock, and reads it.
func readDelivery(body []byte, signature, secret string, now time.Time) (d Delivery, err error) {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	given, err := hex.DecodeString(signature)
	if err != nil || !hmac.Equal(given, mac.Sum(nil)) {
		return d, errSignature
	}
	if d, err = parseDelivery(body); err != nil {
		return d, err
	}
	if off := now.Sub(d.At); off > deliveryWindow || off < -deliveryWindow {
		return d, errOld
	}
	return d, nil
}

// parseDelivery reads a body. Fields that are not used may have any form.
func parseDelivery(body []byte) (d Delivery, err error) {
	var w struct {
		Action    string          `json:"action"`
		Type      string          `json:"type"`
		Timestamp int64           `json:"webhookTimestamp"`
		Data      json.RawMessage `json:"data"`
		Actor     json.RawMessage `json:"actor"`
		Before    json.RawMessage `json:"updatedFrom"`
	}
	if err := json.Unmarshal(body, &w); err != nil || w.Type == "" || len(w.Type) > 100 || len(w.Action) > 100 {
		return d, errForm
	}
	d = Delivery{Action: w.Action, Type: w.Type, At: time.UnixMilli(w.Timestamp)}
	var thing struct {
		ID    string `json:"id"`
		State struct {
			Type string `json:"type"`
		} `json:"state"`
	}
	if w.Type == "Issue" {
		if json.Unmarshal(w.Data, &thing) != nil || len(thing.State.Type) > 100 {
			return d, errForm
		}
		d.State = thing.State.Type
		if id, err := audit.ParseID(thing.ID); err == nil {
			d.ID = id
		}
		d.By = mover(w.Actor, w.Before)
	}
	return d, nil
}

// mover is who moved an issue to another state, by name; "" when before, what the delivery says was so until then, has no
// state, or no actor has a name.
func mover(actor, before json.RawMessage) string {
	var was struct {
		StateID string `json:"stateId"`
	}
	var who struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	}
	if json.Unmarshal(before, &was) != nil || was.StateID == "" || json.Unmarshal(actor, &who) != nil {
		return ""
	}
	name := []rune(strings.ToValidUTF8(cmp.Or(who.Name, who.ID), ""))
	return string(name[:min(len(name), longestActor)])
}

// closedStates are the types of state in which an issue is closed.
var closedStates = []string{"completed", "canceled", "duplicate"}

// Inbox takes Linear's webhooks. Every door of an installation may have one.
type Inbox struct {
	Outbox    *Outbox
	Publisher Publisher
	Target    string // whose issues they are about
	Secret    string
	Logger    *slog.Logger
	Now       func() time.Time // nil is time.Now
}

// ServeHTTP answers 200 once the delivery is published and noted, 401 to wrong signatures and times, 400
// to what is no webhook, 413, and 503 when it could not be kept: Linear then delivers again. A delivery
// that is known is not handled again: by Linear-Delivery, and, since that header is not signed, by what is signed, too.
func (in *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(slowestBody)) // where the server can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxDelivery))
	if err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			http.Error(w, "larger than a webhook may be", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the body cannot be read", http.StatusBadRequest)
		return
	}
	now := time.Now
	if in.Now != nil {
		now = in.Now
	}
	at := now()
	d, err := readDelivery(body, r.Header.Get("Linear-Signature"), in.Secret, at)
	id := r.Header.Get("Linear-Delivery")
	switch {
	case errors.Is(err, errSignature), errors.Is(err, errOld):
		http.Error(w, err.Error(), http.StatusUnauthorized)
		return
	case err != nil || id == "" || len(id) > 100:
		http.Error(w, errForm.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	if err := in.take(ctx, id, &d, at); err != nil {
		in.Logger.Warn("a webhook was not taken; Linear delivers it again", "delivery", id, "error", err.Error())
		http.Error(w, "not now", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// take publishes the issue and then notes the delivery: one that is noted is never lost, one that is
// lost in between comes again.
func (in *Inbox) take(ctx context.Context, id string, d *Delivery, at time.Time) error {
	if d.Type != "Issue" || d.ID.IsZero() {
		return nil // nothing for us
	}
	known, err := in.Outbox.delivered(ctx, in.Target, id, d)
	if err != nil || known {
		return err
	}
	m, err := (&note{Target: in.Target, Issue: d.ID, By: d.By, Closed: slices.Contains(closedStates, d.State)}).message()
	if err != nil {
		return err
	}
	m.SetContext(ctx)
	if err := in.Publisher.Publish(kafkaconn.Remediation, m); err != nil {
		return err
	}
	return in.Outbox.noteDelivery(ctx, in.Target, id, d, at)
}

// delivered tells whether a delivery is noted, under this id or another: two changes of an issue in the same
// millisecond to the same state are one to us, who read the issue itself.
func (o *Outbox) delivered(ctx context.Context, target, id string, d *Delivery) (bool, error) {
	var n uint64
	err := o.conn.QueryRow(ctx, "SELECT count() FROM "+o.db+".ticket_events WHERE target = {target:String}"+
		" AND (delivery_id = {id:String} OR remote_id = {remote:String} AND toUnixTimestamp64Milli(sent_at) = {sent:Int64} AND event = {event:String} AND action = {action:String} AND state_type = {state:String})",
		clickhouse.Named("target", target), clickhouse.Named("id", id), clickhouse.Named("remote", uuid.UUID(d.ID).String()), clickhouse.Named("sent", strconv.FormatInt(ms(d.At), 10)),
		clickhouse.Named("event", d.Type), clickhouse.Named("action", d.Action), clickhouse.Named("state", d.State)).Scan(&n)
	return n > 0, chconn.Wrap("remediation: look up delivery", err)
}

func (o *Outbox) noteDelivery(ctx context.Context, target, id string, d *Delivery, at time.Time) error {
	const op = "remediation: note delivery"
	b, err := o.conn.PrepareBatch(synchronous(ctx), "INSERT INTO "+o.db+".ticket_events (target, delivery_id, version, remote_id, event, action, state_type, sent_at, received_at)")
	if err != nil {
		return chconn.Wrap(op, err)
	}
	defer func() { _ = b.Close() }()
	err = b.Append(target, id, uint64(ms(at)), uuid.UUID(d.ID).String(), d.Type, d.Action, d.State, ms(d.At), ms(at))
	if err == nil {
		err = b.Send()
	}
	return chconn.Wrap(op, err)
}

package judge

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// Request asks for the judge's verdict on a stored interaction: a message of evenhand.judge. Its answer has an
// id made of the request alone, so a request that comes twice is answered once.
type Request struct {
	Tenant  string
	Day     time.Time // of the event, at midnight UTC
	ID      audit.ID
	Digest  [32]byte
	Attempt int // from 1
	Why     Reason
}

// MaxAttempt is beyond any number of attempts.
const MaxAttempt = 1000

// Of makes the first request for an interaction.
func Of(in *audit.Interaction, why Reason) Request {
	return Request{Tenant: in.Tenant, Day: in.Day(), ID: in.ID, Digest: in.Digest, Attempt: 1, Why: why}
}

// ResultID is the id of the verdict that answers.
func (r *Request) ResultID() audit.ID {
	return audit.DeriveID(r.Tenant, string(r.ID[:]), string(r.Digest[:]), audit.JudgeAnalyzer, strconv.Itoa(r.Attempt))
}

// wire is the message.
type wire struct {
	Tenant  string   `json:"tenant_id"`
	Day     string   `json:"event_day"`
	ID      audit.ID `json:"event_id"`
	Digest  string   `json:"content_digest"`
	Result  audit.ID `json:"result_id"`
	Attempt int      `json:"attempt"`
	Why     Reason   `json:"reason"`
}

// Encode gives the message's JSON.
func (r *Request) Encode() ([]byte, error) {
	return json.Marshal(wire{r.Tenant, r.Day.UTC().Format(time.DateOnly), r.ID, hex.EncodeToString(r.Digest[:]), r.ResultID(), r.Attempt, r.Why})
}

var errRequest = errors.New("not a request: want tenant_id, event_day, event_id, content_digest, result_id made of them, attempt and reason")

// Decode reads a message. An error is of KindInvalid and holds nothing of it.
func Decode(payload []byte) (Request, error) {
	const op = "judge: decode request"
	var w wire
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields()
	if d.Decode(&w) != nil {
		return Request{}, audit.E(op, audit.KindInvalid, errRequest)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Request{}, audit.E(op, audit.KindInvalid, errRequest)
	}
	r := Request{Tenant: w.Tenant, ID: w.ID, Attempt: w.Attempt, Why: w.Why}
	day, err := time.Parse(time.DateOnly, w.Day)
	n, herr := hex.Decode(r.Digest[:], []byte(w.Digest[:min(len(w.Digest), 2*len(r.Digest))]))
	r.Day = day
	if err != nil || herr != nil || n != len(r.Digest) || len(w.Digest) != 2*n || w.Tenant == "" || w.ID.IsZero() ||
		w.Attempt < 1 || w.Attempt > MaxAttempt || w.Result != r.ResultID() {
		return Request{}, audit.E(op, audit.KindInvalid, errRequest)
	}
	return r, nil
}

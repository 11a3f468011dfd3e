package arbiter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sources"
)

// version of the records. A process that meets a higher one stops: it cannot tell what is valid.
const version = 1

// genesisKey is the Kafka key of records that give the log its id. The first one counts.
const genesisKey = "log"

// wire is a record's value. The Kafka key is the decision's key.
type wire struct {
	V        int             `json:"v"`
	Log      string          `json:"log"`                // id of the log that the proposer read
	Proposal string          `json:"proposal,omitempty"` // none: a record that gives the log its id
	Seq      uint32          `json:"seq,omitempty"`
	By       string          `json:"by"`
	Value    json.RawMessage `json:"value,omitempty"`
	// Restored is when the decision fell in the log that is lost: its kind's rule was kept then.
	Restored string `json:"restored,omitempty"`
}

// encode makes a record's value; v is compact JSON.
func encode(w wire) ([]byte, error) {
	w.V = version
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(w); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// parsed is a record of the log that could be read.
type parsed struct {
	genesis  bool
	restored bool
	log      audit.ID
	decision Decision // without N
}

var errNotOurs = errors.New("not a record of ours")

// parse reads a record. errNotOurs is deterministic and means that the record counts for nothing;
// ErrNewer means that this program must not go on.
func parse(r *sources.Record) (parsed, error) {
	var head struct{ V *int }
	if json.Unmarshal(r.Value, &head) != nil || head.V == nil || *head.V < 1 {
		return parsed{}, errNotOurs
	}
	if *head.V > version {
		return parsed{}, ErrNewer
	}
	var w wire
	if json.Unmarshal(r.Value, &w) != nil {
		return parsed{}, errNotOurs
	}
	log, err := audit.ParseID(w.Log)
	if err != nil || log.IsZero() {
		return parsed{}, errNotOurs
	}
	if string(r.Key) == genesisKey {
		return parsed{genesis: true, log: log}, nil
	}
	key, err := ParseKey(string(r.Key))
	if err != nil {
		return parsed{}, errNotOurs
	}
	id, err := audit.ParseID(w.Proposal)
	if err != nil || id.IsZero() || w.Seq == 0 || len(w.Value) == 0 || len(w.Value) > MaxValue {
		return parsed{}, errNotOurs
	}
	return parsed{log: log, restored: w.Restored != "", decision: Decision{
		Key: key, Seq: w.Seq, Value: w.Value, Proposer: w.By, Proposal: id, Log: log, Offset: r.Offset, Time: r.Time,
	}}, nil
}

// check completes a proposal and says what cannot be right about it.
func (r *Rules) check(p *Proposal) error {
	if _, err := ParseKey(p.Key.String()); err != nil {
		return err
	}
	if _, ok := r.kinds[p.Key.Kind]; !ok {
		return fmt.Errorf("kind %q is not known to this process", p.Key.Kind)
	}
	if p.Seq == 0 {
		return errors.New("the sequence number is 0; a key's first decision is number 1")
	}
	var b bytes.Buffer
	if err := json.Compact(&b, p.Value); err != nil {
		return errors.New("the value is not JSON")
	}
	if b.Len() > MaxValue {
		return fmt.Errorf("the value has %d bytes, at most %d are taken", b.Len(), MaxValue)
	}
	p.Value = b.Bytes()
	return nil
}

package join

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/evenhand/evenhand/ingest/call"
)

// headerTold is on a record of the topic that is no part but says which groups were told.
const headerTold = "evenhand-told"

// version of the records' form.
const version = 1

// record is a part as the topic holds it.
type record struct {
	V int `json:"v"`
	call.Part
	// N are the places of the messages and then of the answers; left out when all are 0.
	N []int `json:"n,omitempty"`
}

func encode(p *call.Part) ([]byte, error) {
	r := record{V: version, Part: *p}
	placed := false
	for _, ms := range [][]call.Message{p.Messages, p.Answers} {
		for _, m := range ms {
			r.N = append(r.N, m.N)
			placed = placed || m.N != 0
		}
	}
	if !placed {
		r.N = nil
	}
	return json.Marshal(r)
}

// decode reads a part. Its errors quote nothing.
func decode(value []byte) (call.Part, error) {
	var r record
	if err := unmarshal(value, &r); err != nil {
		return call.Part{}, err
	}
	switch {
	case r.V != version:
		return call.Part{}, fmt.Errorf("version %d of a part is not known here", r.V)
	case r.Key == "" || r.Group == "":
		return call.Part{}, errors.New("a part wants a group and a key")
	}
	n := r.N
	for _, ms := range [][]call.Message{r.Messages, r.Answers} {
		for i := range ms {
			if len(n) > 0 {
				ms[i].N, n = n[0], n[1:]
			}
		}
	}
	return r.Part, nil
}

func unmarshal(value []byte, to any) error {
	err := json.Unmarshal(value, to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON: fault at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("a value of the wrong type at byte %d", kind.Offset)
	}
	return errors.New("not the JSON of a part")
}

package arbiter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Kind is a family of keys and the rule of their decisions.
//
// Follows says why next may not follow prev, or nil. prev is nil for a key's first decision; the
// sequence number has been checked. It must depend on its arguments only, times included (they are the
// broker's), and never change once records of the kind were written: a new rule is a new kind.
// It must not keep or change its arguments.
type Kind struct {
	Name    string
	Follows func(prev *Decision, next *Decision) error
}

// Once is a kind whose keys are decided once.
func Once(name string) Kind {
	return Kind{name, func(prev, _ *Decision) error {
		if prev != nil {
			return errors.New("the key is decided for good")
		}
		return nil
	}}
}

// States is a kind whose values have a field "state". after lists which states may follow a state;
// those after "" may be the first.
func States(name string, after map[string][]string) Kind {
	return Kind{name, func(prev, next *Decision) error {
		var from, to struct{ State string }
		if prev != nil {
			if err := json.Unmarshal(prev.Value, &from); err != nil {
				return errors.New("the state before is not readable")
			}
		}
		if err := json.Unmarshal(next.Value, &to); err != nil || to.State == "" {
			return errors.New(`the value has no field "state"`)
		}
		if !slices.Contains(after[from.State], to.State) {
			return fmt.Errorf("%.40q does not follow %.40q", to.State, from.State)
		}
		return nil
	}}
}

// Lease is a kind whose values have a field "holder", and "released": true to give the key back. While
// a holder has it, others are refused until the lease has run out; the holder itself may renew at any
// time. Time is the broker's.
func Lease(name string, lasts time.Duration) Kind {
	type lease struct {
		Holder   string
		Released bool
	}
	return Kind{name, func(prev, next *Decision) error {
		var had, wants lease
		if err := json.Unmarshal(next.Value, &wants); err != nil || wants.Holder == "" {
			return errors.New(`the value has no field "holder"`)
		}
		if prev == nil {
			return nil
		}
		if err := json.Unmarshal(prev.Value, &had); err != nil {
			return errors.New("the holder before is not readable")
		}
		if had.Holder != wants.Holder && !had.Released && next.Time.Sub(prev.Time) < lasts {
			return errors.New("the key is held by another")
		}
		return nil
	}}
}

// Rules are the kinds that a program knows. Processes on one log share one list.
type Rules struct {
	kinds map[string]Kind
	sum   uint64 // of the names: what was folded under another list is folded again
}

// NewRules checks the kinds' names.
func NewRules(kinds ...Kind) (*Rules, error) {
	r := &Rules{kinds: map[string]Kind{}}
	var names []string
	for _, k := range kinds {
		if _, twice := r.kinds[k.Name]; twice || !kindName.MatchString(k.Name) || k.Follows == nil {
			return nil, fmt.Errorf("kind %q: wants a name of its own of lower-case letters, digits and underscores, and a rule", k.Name)
		}
		r.kinds[k.Name] = k
		names = append(names, k.Name)
	}
	slices.Sort(names)
	h := xxhash.New()
	for _, n := range names {
		_, _ = h.WriteString(n + "\n")
	}
	r.sum = h.Sum64()
	return r, nil
}

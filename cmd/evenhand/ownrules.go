package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/detectors/rules"
)

type rulesSettings struct {
	// Dir holds packs of the operator's own beside the shipped ones; "" for none.
	Dir string `koanf:"dir"`
	// Poll is how often the files of Dir are looked at, 100ms..1h; 0 leaves it to SIGHUP.
	Poll time.Duration `koanf:"poll"`
}

func (r rulesSettings) validate() error {
	if r.Poll != 0 && (r.Poll < 100*time.Millisecond || r.Poll > time.Hour) {
		return fmt.Errorf("rules.poll: %v is neither 0 nor in 100ms..1h", r.Poll)
	}
	return nil
}

// load reads the packs of rules.dir, none where that is not set. They keep what shipped packs keep, share no id with those, and have
// the guards, lists and classes that shipped packs of their language have in common.
func (r rulesSettings) load(shipped []*rules.Pack) ([]*rules.Pack, error) {
	if r.Dir == "" {
		return nil, nil
	}
	if err := r.readable(); err != nil {
		return nil, err
	}
	own, err := rules.Load(os.DirFS(r.Dir), shipped...)
	known := rules.Faults(err)
	if err != nil && len(known) == 0 {
		return nil, err
	}
	faults := slices.Concat(rules.Strays(os.DirFS(r.Dir)), known, rules.Lint(own, known...), taken(shipped, own), rules.Test(rules.Sound(own, known)))
	if len(faults) > 0 {
		return nil, &settingsError{&packFaults{r.Dir, faults}}
	}
	return own, nil
}

// readable tells why rules.dir is no folder that can be read.
func (r rulesSettings) readable() error {
	if _, err := os.ReadDir(r.Dir); err != nil {
		return &settingsError{fmt.Errorf("rules.dir: %w", err)}
	}
	return nil
}

// taken are the ids of own packs and rules that shipped ones have, of a pack with a shipped one's id that id alone.
func taken(shipped, own []*rules.Pack) (faults []rules.Fault) {
	of := map[string]string{} // id -> its pack
	for _, p := range shipped {
		of[p.ID] = p.ID
		for _, r := range p.Rules {
			of[r.ID] = p.ID
		}
	}
	for _, p := range own {
		ids := []string{p.ID}
		if of[p.ID] == "" {
			for _, r := range p.Rules {
				ids = append(ids, r.ID)
			}
		}
		for _, id := range ids {
			if pack := of[id]; pack != "" {
				faults = append(faults, rules.Fault{Where: p.ID, Rule: id, Field: "id", Problem: idTaken + pack + "; choose one of your own"})
			}
		}
	}
	return faults
}

// idTaken begins the problem of a fault of taken.
const idTaken = "is taken by the shipped pack "

// files tells the packs' files apart from other ones under the same names: their names, sizes and times.
func (r rulesSettings) files() string {
	var names []string
	for _, glob := range []string{"*.yaml", filepath.Join("packs", "*.yaml")} {
		found, err := filepath.Glob(filepath.Join(r.Dir, glob))
		if err != nil {
			return ""
		}
		names = append(names, found...)
	}
	var b strings.Builder
	for _, name := range names {
		if info, err := os.Stat(name); err == nil { // of what a link points to
			fmt.Fprintln(&b, name, info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String()
}

// What of a decoder's complaint holds no sentence: the line, the key where it is a name, the kinds of value.
var (
	badKey   = regexp.MustCompile("^line [0-9]+: field [A-Za-z_][A-Za-z0-9_-]{0,31} (?:not found|already set) in type ")
	badValue = regexp.MustCompile("^(line [0-9]+: cannot unmarshal !![a-z]+).* (into [^ ]+)$")
	badLine  = regexp.MustCompile("^(?:yaml: )?line [0-9]+")
)

// tellable is what of a fault's problem may reach logs: that an id is taken or a file not read, a line and a key, not what stands there.
func tellable(problem string) string {
	switch {
	case strings.HasPrefix(problem, idTaken), strings.HasPrefix(problem, rules.NotRead), badKey.MatchString(problem):
		return problem
	case badValue.MatchString(problem):
		return strings.Join(badValue.FindStringSubmatch(problem)[1:], " ")
	}
	return badLine.FindString(problem)
}

// packFaults are the faults of own packs. They say where, not what stands there: they reach logs.
type packFaults struct {
	dir    string
	faults []rules.Fault
}

func (e *packFaults) Error() string {
	var errs []error
	for _, f := range e.faults {
		f.Problem = tellable(f.Problem)
		errs = append(errs, fmt.Errorf("rules.dir: %s", strings.TrimSuffix(f.Error(), ": ")))
	}
	errs = append(errs, fmt.Errorf("what is wrong: evenhand rules lint --dir %s; evenhand rules test --dir %s", e.dir, e.dir))
	return errors.Join(errs...).Error()
}

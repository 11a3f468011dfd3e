package rules

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/identity"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/rules/check"
)

// defaultConfidence stands for a rule that does not state its own.
const defaultConfidence = 0.8

// Fault is one thing wrong with a pack, named so that its author finds it.
type Fault struct {
	Where   string // file when loading, pack id after
	Rule    string // "" when the fault is the pack's
	Field   string // YAML key, with an index where it is a list: "patterns[1]"; or ""
	Problem string
}

func (f Fault) Error() string {
	where := []string{f.Where}
	for _, part := range []string{f.Rule, f.Field} {
		if part != "" {
			where = append(where, part)
		}
	}
	return strings.Join(where, ":") + ": " + f.Problem
}

// Join makes one error of faults, nil when there are none.
func Join(faults []Fault) error {
	errs := make([]error, len(faults))
	for i, f := range faults {
		errs[i] = f
	}
	return errors.Join(errs...)
}

// Load reads every *.yaml at the root of fsys and in its folder packs, in order of names, expands
// lists, compiles guards and fills what [Rule] marks as filled. Rule ids are unique over all packs.
// It reports every fault at once, as a joined error of [Fault] values of kind invalid, beside the packs that could be read,
// which serve [Lint] then and nothing else.
//
// What beside have in common holds for packs of their family and language, too, see [Common]: so packs of an operator's own
// have the guards of the shipped ones.
func Load(fsys fs.FS, beside ...*Pack) ([]*Pack, error) {
	names, err := packFiles(fsys)
	if err != nil {
		return nil, err
	}
	common, faults := loadCommon(fsys, names)
	lexicons, more := loadLexicons(fsys, names)
	faults = append(faults, more...)
	for _, p := range beside {
		if p.Common != nil {
			common[p.Common.ID] = common[p.Common.ID].over(p.Common)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(path.Base(name), commonPrefix) || strings.HasPrefix(path.Base(name), lexiconPrefix)
	})
	loaded, wrong := make([]*Pack, len(names)), make([][]Fault, len(names))
	var files errgroup.Group
	files.SetLimit(runtime.GOMAXPROCS(0))
	var s sound
	for i, name := range names {
		files.Go(func() error { loaded[i], wrong[i] = loadFile(fsys, name, common, lexicons, &s); return nil })
	}
	_ = files.Wait()
	var packs []*Pack
	seen := map[string]string{} // id of a rule or pack -> file
	for i, pack := range loaded {
		faults = append(faults, wrong[i]...)
		if pack != nil {
			faults = append(faults, repeated(pack, names[i], seen)...)
			packs = append(packs, pack)
		}
	}
	if len(faults) > 0 {
		return packs, audit.E("rules: load", audit.KindInvalid, Join(faults))
	}
	return packs, nil
}

// NotRead begins the problem of a fault of Strays.
const NotRead = "is not read: "

// Strays are files of a folder that look like packs and that Load passes over. Hidden folders are none, since mounts keep older files there.
func Strays(fsys fs.FS) (faults []Fault) {
	for _, glob := range []string{"*.yml", "packs/*.yml", "*/*.yaml", "*/*.yml", "packs/*/*.yaml", "packs/*/*.yml"} {
		found, _ := fs.Glob(fsys, glob) // the patterns are sound
		for _, name := range found {
			problem := NotRead + "packs lie in the folder itself or in its folder packs"
			switch dir := path.Dir(name); {
			case strings.HasPrefix(name, ".") || strings.Contains(name, "/."):
				continue
			case dir == "." || dir == "packs":
				if path.Ext(name) == ".yaml" {
					continue
				}
				problem = NotRead + "packs are files *.yaml"
			}
			if f := (Fault{Where: name, Problem: problem}); !slices.Contains(faults, f) {
				faults = append(faults, f)
			}
		}
	}
	return faults
}

// Mark tells one state of a pack from another.
type Mark struct{ Version, Content string }

// Marks are those of a folder's packs and common files, by id; files that are no YAML are left out. Comments are no content.
func Marks(fsys fs.FS) map[string]Mark {
	marks := map[string]Mark{}
	names, _ := packFiles(fsys)
	for _, name := range names {
		var what struct {
			Pack, Common, Version string
			Rest                  map[string]any `yaml:",inline"`
		}
		raw, err := fs.ReadFile(fsys, name)
		if err != nil || yaml.Unmarshal(raw, &what) != nil {
			continue
		}
		content, err := yaml.Marshal(what.Rest)
		if err != nil {
			continue
		}
		marks[cmp.Or(what.Pack, what.Common)] = Mark{what.Version, string(content)}
	}
	delete(marks, "")
	return marks
}

// packFiles are the files of a folder that Load reads.
func packFiles(fsys fs.FS) (names []string, err error) {
	for _, glob := range []string{"*.yaml", "packs/*.yaml"} {
		found, err := fs.Glob(fsys, glob)
		if err != nil {
			return nil, audit.E("rules: load", audit.KindInternal, err)
		}
		names = append(names, found...)
	}
	return names, nil
}

func loadFile(fsys fs.FS, name string, common map[string]*Common, lexicons map[string]*identity.Lexicon, s *sound) (*Pack, []Fault) {
	raw, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, []Fault{{Where: name, Problem: err.Error()}}
	}
	pack := &Pack{}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(pack); err != nil {
		return nil, yamlFaults(name, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, []Fault{{Where: name, Problem: "more than one YAML document in the file; make one file of each"}}
	}
	pack.file = name
	pack.Common, pack.lexicon = commonOf(pack, common), lexicons[pack.Language]
	return pack, fill(pack, name, s)
}

// repeated gives the ids of a file's pack that were seen before, and adds them.
func repeated(pack *Pack, name string, seen map[string]string) (faults []Fault) {
	for _, id := range append([]string{pack.ID}, ruleIDs(pack)...) {
		if other, dup := seen[id]; dup {
			faults = append(faults, Fault{name, id, "id", "already used in " + path.Base(other)})
		}
		seen[id] = name
	}
	return faults
}

// yamlFaults makes one fault of each complaint of the decoder, or of a file's reader.
func yamlFaults(name string, err error) (faults []Fault) {
	var list *yaml.TypeError
	var joined interface{ Unwrap() []error }
	switch {
	case errors.As(err, &list):
		for _, e := range list.Errors {
			faults = append(faults, Fault{Where: name, Problem: fmt.Sprint(e)})
		}
	case errors.As(err, &joined):
		for _, e := range joined.Unwrap() {
			faults = append(faults, Fault{Where: name, Problem: e.Error()})
		}
	default:
		faults = []Fault{{Where: name, Problem: err.Error()}}
	}
	return faults
}

func ruleIDs(p *Pack) []string {
	ids := make([]string, 0, len(p.Rules))
	for _, r := range p.Rules {
		if r != nil {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Fill prepares a pack that was built in code, as Load prepares one that it read: where names it in
// faults. Custom gate rules come this way.
func Fill(p *Pack, where string) error {
	if faults := fill(p, where, &sound{}); len(faults) > 0 {
		return audit.E("rules: fill", audit.KindInvalid, Join(faults))
	}
	return nil
}

func fill(p *Pack, where string, s *sound) []Fault {
	faults := packFaults(p, where)
	p.Rules = expandTerms(p.Rules)
	if p.lexicon == nil {
		p.lexicon = identity.In(p.Language)
	}
	named, more := allLists(p, where)
	faults = append(faults, more...)
	lists, more := expandLists(named, where, s)
	faults = append(faults, more...)
	if p.Common != nil {
		p.Unless = append(slices.Clone(p.Common.Unless), p.Unless...)
		p.UnlessClause = append(slices.Clone(p.Common.UnlessClause), p.UnlessClause...)
	}
	common, more := lists.guardsOf("unless", p.Unless, where)
	faults = append(faults, more...)
	p.clause, more = lists.guardsOf("unless_clause", p.UnlessClause, where)
	faults = append(faults, more...)
	for _, r := range p.Rules {
		if r == nil || r.ID == "" {
			faults = append(faults, Fault{where, "", "rules", "a rule without an id"})
			continue
		}
		if missing := inherit(p, r, where, named); len(missing) > 0 {
			faults = append(faults, missing...)
			if len(r.Patterns) == 0 {
				continue // what it has comes from the class
			}
		}
		faults = append(faults, fillRule(p, r, where, lists, common)...)
	}
	p.Rules = slices.DeleteFunc(p.Rules, func(r *Rule) bool { return r == nil || r.ID == "" })
	p.guards = newGuards(lists.guardPatterns)
	return faults
}

// guardsOf makes the guards of a pack's field; those that are none are faults.
func (l *lists) guardsOf(field string, patterns []string, where string) (gs []Guard, faults []Fault) {
	for i, p := range patterns {
		g, err := l.guard(p)
		if err != nil {
			faults = append(faults, Fault{where, "", index(field, i), err.Error()})
			continue
		}
		gs = append(gs, g)
	}
	return gs, faults
}

func packFaults(p *Pack, where string) (faults []Fault) {
	if p.ID == "" || p.Version == "" || p.Language == "" {
		faults = append(faults, Fault{where, "", "pack", "pack, version and language must all be set"})
	}
	if p.EnglishOnly && p.Language != "en" {
		faults = append(faults, Fault{where, "", "english_only", fmt.Sprintf("is for packs of language en, not %s", p.Language)})
	}
	if p.NotInEnglish && (p.Language == "en" || p.Raw) {
		faults = append(faults, Fault{where, "", "not_in_english", "is for packs of other languages than en, and not for raw ones"})
	}
	set := 0
	for _, is := range []bool{p.Ground != "", p.Category != "", p.Wording != "", p.Gate, p.PII} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		faults = append(faults, Fault{where, "", "ground", "exactly one of ground, category, wording, gate and pii must be set"})
	case p.Ground != "" && !slices.Contains(audit.Grounds, p.Ground):
		faults = append(faults, Fault{where, "", "ground", fmt.Sprintf("%q is not one of %s", p.Ground, audit.List(audit.Grounds))})
	case p.Category != "" && !slices.Contains(audit.SafetyCategories, p.Category):
		faults = append(faults, Fault{where, "", "category", fmt.Sprintf("%q is not one of %s", p.Category, audit.List(audit.SafetyCategories))})
	case p.Wording != "" && audit.WordingSeverity[p.Wording].Min == "":
		faults = append(faults, Fault{where, "", "wording", fmt.Sprintf("%q is not one of %s", p.Wording, audit.List(slices.Sorted(maps.Keys(audit.WordingSeverity))))})
	}
	if len(p.Rules) == 0 {
		faults = append(faults, Fault{where, "", "rules", "the pack has none"})
	}
	return faults
}

func fillRule(p *Pack, r *Rule, where string, lists *lists, common []Guard) (faults []Fault) {
	r.Pack, r.Kind = p, kindOf(p, r)
	r.Expanded, r.Guards = nil, slices.Clone(common)
	r.Source, r.Rationale = cmp.Or(r.Source, p.Source), cmp.Or(r.Rationale, p.Rationale)
	if r.Mitigation == "" && r.Replace != "" {
		r.Mitigation = audit.MitigationReplace
	}
	if r.Mitigation != "" && !slices.Contains(audit.Mitigations, r.Mitigation) {
		faults = append(faults, Fault{where, r.ID, "mitigation", fmt.Sprintf("%q is not one of %s", r.Mitigation, audit.List(audit.Mitigations))})
	}
	r.near, r.notNear, r.notBefore = phrases(r.Near), phrases(r.NotNear), phrases(r.NotBefore)
	if len(r.Patterns) == 0 {
		faults = append(faults, Fault{where, r.ID, "patterns", "there must be at least one"})
	}
	for i, pattern := range r.Patterns {
		if p.Raw {
			pattern = normal.SpelledPattern(pattern)
		}
		full, err := lists.expand(pattern)
		if err != nil {
			faults = append(faults, Fault{where, r.ID, index("patterns", i), err.Error()})
			continue
		}
		r.Expanded = append(r.Expanded, full)
		if more := lists.atUmlaut(pattern); more != "" {
			r.Expanded = append(r.Expanded, more)
		}
	}
	for i, u := range r.Unless {
		if g, err := lists.guard(u); err != nil {
			faults = append(faults, Fault{where, r.ID, index("unless", i), err.Error()})
		} else {
			r.Guards = append(r.Guards, g)
		}
	}
	r.here = nil
	for i, u := range r.UnlessHere {
		full, err := lists.expand(u)
		if err == nil {
			var re *regexp.Regexp
			re, err = regexp.Compile("(?i)(?:" + full + ")$")
			r.here = append(r.here, re)
		}
		if err != nil {
			faults = append(faults, Fault{where, r.ID, index("unless_here", i), err.Error()})
		}
	}
	if r.Check != "" && check.Named(r.Check) == nil {
		faults = append(faults, Fault{where, r.ID, "check", fmt.Sprintf("%q is not one of %s", r.Check, audit.List(check.Names()))})
	}
	if r.Confidence == 0 {
		r.Confidence = defaultConfidence
	}
	if !(r.Confidence > 0 && r.Confidence <= 1) { // NaN, too
		faults = append(faults, Fault{where, r.ID, "confidence", "must lie in (0, 1]"})
	}
	if r.Severity != "" && r.Severity.Level() == 0 {
		faults = append(faults, Fault{where, r.ID, "severity", fmt.Sprintf("%q is not one of %s", r.Severity, audit.List(audit.Severities))})
	}
	return faults
}

func kindOf(p *Pack, r *Rule) string {
	switch {
	case p.Ground != "":
		return "charter." + string(p.Ground)
	case p.Category != "":
		return "safety." + p.Category
	case p.PII:
		return "pii." + strings.ToLower(r.Entity)
	case p.Wording != "":
		return p.Wording
	}
	return "gate." + r.ID
}

func index(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }

// Sound are the packs whose files have none of the faults.
func Sound(packs []*Pack, faults []Fault) []*Pack {
	return slices.DeleteFunc(slices.Clone(packs), func(p *Pack) bool {
		return slices.ContainsFunc(faults, func(f Fault) bool { return f.Where == p.file })
	})
}

// Faults lists what an error of Load or Fill holds.
func Faults(err error) (faults []Fault) {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return nil
	}
	for _, e := range joined.Unwrap() {
		var f Fault
		if errors.As(e, &f) {
			faults = append(faults, f)
		}
	}
	return faults
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/ingest"
)

type rulesCmd struct {
	List    rulesListCmd    `cmd:"" help:"List the rules."`
	Test    rulesTestCmd    `cmd:"" help:"Run every rule's own sentences: must match, must not match."`
	Explain rulesExplainCmd `cmd:"" help:"Say what a rule is for, when it fires and when not."`
	Lint    rulesLintCmd    `cmd:"" help:"Check ids, severity ranges, sentences and patterns."`
	New     rulesNewCmd     `cmd:"" help:"Write the skeleton of a pack."`
	Prune   rulesPruneCmd   `cmd:"" help:"Say what every rule brings over labelled texts, and which bring nothing."`
}

// packsFlags choose the packs: the shipped ones or a folder of YAML files.
type packsFlags struct {
	Dir string `help:"Folder of YAML packs instead of the shipped ones." type:"existingdir" placeholder:"DIR"`
}

func (f packsFlags) load() ([]*rules.Pack, error) {
	shipped, err := shippedPacks()
	if err != nil || f.Dir == "" {
		return shipped, err
	}
	return rules.Load(os.DirFS(f.Dir), shipped...)
}

// inForce loads the packs of --dir, or the shipped ones and those of the settings' rules.dir and detect.gate_rules: own are the latter. Rules
// of the gate that replace the built-in ones stand in their place, as they do where texts are judged.
func (f packsFlags) inForce(c *cli) (packs, own []*rules.Pack, err error) {
	if packs, err = f.load(); err != nil || f.Dir != "" {
		return packs, nil, err
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return nil, nil, err
	}
	if own, err = s.Rules.load(packs); err != nil {
		return nil, nil, err
	}
	packs = slices.Concat(packs, own)
	if len(s.Detect.GateRules)+len(s.Detect.GateExtraRules) == 0 {
		return packs, own, nil
	}
	g, err := gate.New(s.Detect.GateRules, s.Detect.GateExtraRules, byDetector(own).gates...)
	if err != nil {
		return nil, nil, &settingsError{bare(err)}
	}
	gates := byDetector(packs).gates
	packs = slices.DeleteFunc(packs, func(p *rules.Pack) bool { return slices.Contains(gates, p) })
	for _, r := range g.Rules() {
		if !slices.Contains(packs, r.Pack) {
			packs = append(packs, r.Pack)
		}
		if r.Pack.ID == gate.CustomPack && !slices.Contains(own, r.Pack) {
			own = append(own, r.Pack)
		}
	}
	return packs, own, nil
}

type rulesListCmd struct {
	packsFlags
	Kind string `help:"Only rules of this kind, such as charter.sex." placeholder:"KIND"`
	JSON bool   `help:"Print JSON." name:"json"`
}

func (rulesListCmd) Help() string {
	return `Lists the shipped rules and, marked as own, those of rules.dir and of detect.gate_rules and gate_extra_rules in the settings. Rules of
the gate have their category in brackets.`
}

// Run lists the rules.
func (cmd *rulesListCmd) Run(c *cli, std *stdio) error {
	packs, own, err := cmd.inForce(c)
	if err != nil {
		return err
	}
	type row struct {
		ID          string `json:"id"`
		Kind        string `json:"kind"`
		Severity    string `json:"severity,omitempty"`
		Pack        string `json:"pack"`
		Version     string `json:"version"`
		Description string `json:"description"`
		Category    string `json:"category,omitempty"` // of gate rules
		Own         bool   `json:"own,omitempty"`      // of rules.dir or detect.gate_rules
	}
	var rows []row
	for _, r := range rules.All(packs) {
		if cmd.Kind == "" || r.Kind == cmd.Kind {
			rows = append(rows, row{r.ID, r.Kind, string(r.Severity), r.Pack.ID, r.Pack.Version, r.Description, r.Category, slices.Contains(own, r.Pack)})
		}
	}
	if rows == nil {
		return &settingsError{fmt.Errorf("--kind: no rule is of kind %q; there are %s", cmd.Kind, strings.Join(kinds(packs), ", "))}
	}
	if cmd.JSON {
		return json.NewEncoder(std.out).Encode(rows)
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RULE\tKIND\tSEVERITY\tDESCRIPTION")
	for _, r := range rows {
		if r.Category != "" {
			r.Description += " [" + r.Category + "]"
		}
		if r.Own {
			r.Description += " (own)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.ID, r.Kind, r.Severity, r.Description)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s\n", count(len(rows), "rule"))
	return nil
}

// kinds are those that the packs have rules for.
func kinds(packs []*rules.Pack) (out []string) {
	for _, r := range rules.All(packs) {
		out = append(out, r.Kind)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// chosen loads the packs of --dir, or those of the settings' rules.dir if there is one, or else the shipped ones: what somebody wants looked at.
func (f packsFlags) chosen(c *cli) (packs []*rules.Pack, dir string, err error) {
	if f.Dir != "" {
		packs, err = f.load()
		return packs, f.Dir, err
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return nil, "", err
	}
	if f.Dir = s.Rules.Dir; f.Dir != "" {
		if err := s.Rules.readable(); err != nil {
			return nil, "", err
		}
	}
	packs, err = f.load()
	return packs, f.Dir, err
}

// heldToShipped is what the help of test and lint says of --dir.
const heldToShipped = `With --dir the ids are held to those of the shipped packs, too, as 'evenhand up' holds the packs of rules.dir. A pack with the id of a
shipped one is looked at as a new version of that, which rules.dir does not take. Without --dir it is the packs of rules.dir in the settings
that are looked at, and without that the shipped ones.

All faults of all files are named at once, those that keep a file from loading among them, and the exit status is 3. A folder without packs, and files
that look like packs and are not read, are faults. Exit status 2: the folder itself cannot be read.`

type rulesTestCmd struct{ packsFlags }

func (rulesTestCmd) Help() string { return heldToShipped }

// Run tests the packs.
func (cmd *rulesTestCmd) Run(c *cli, std *stdio) error {
	return cmd.report(c, std, "test", func(packs []*rules.Pack, known []rules.Fault) []rules.Fault {
		return rules.Test(rules.Sound(packs, known))
	})
}

type rulesLintCmd struct{ packsFlags }

func (rulesLintCmd) Help() string { return heldToShipped }

// Run lints the packs.
func (cmd *rulesLintCmd) Run(c *cli, std *stdio) error {
	return cmd.report(c, std, "lint", func(packs []*rules.Pack, known []rules.Fault) []rules.Fault {
		return rules.Lint(packs, known...)
	})
}

// report prints the faults of loading and those that examine finds beside them; with faults the exit status is 3.
func (f packsFlags) report(c *cli, std *stdio, what string, examine func(packs []*rules.Pack, known []rules.Fault) []rules.Fault) error {
	packs, dir, err := f.chosen(c)
	known := rules.Faults(err)
	if err != nil && len(known) == 0 {
		return err
	}
	faults := examine(packs, known)
	if dir != "" {
		known = append(rules.Strays(os.DirFS(dir)), known...)
		if len(packs)+len(known) == 0 {
			known = append(known, rules.Fault{Where: dir, Problem: "holds no packs: files *.yaml in it or in its folder packs"})
		}
	}
	if dir != "" { // it is or may become rules.dir, and ids are unique there
		shipped, err := shippedPacks()
		if err != nil {
			return err
		}
		ids := slices.DeleteFunc(taken(shipped, packs), func(f rules.Fault) bool {
			edited := f.Rule == f.Where
			if edited {
				fmt.Fprintf(std.err, "%s is a shipped pack: here it is a new version of that; rules.dir takes packs with ids of your own\n", f.Where)
			}
			return edited
		})
		faults = append(ids, faults...)
	}
	faults = append(known, faults...)
	for _, fault := range faults {
		fmt.Fprintln(std.out, fault.Error())
	}
	sentences := 0
	for _, r := range rules.All(packs) {
		sentences += len(r.Match) + len(r.NoMatch)
	}
	fmt.Fprintf(std.out, "%s: %s, %s, %s, %s\n", what, count(len(packs), "pack"), count(len(rules.All(packs)), "rule"), count(sentences, "sentence"), count(len(faults), "fault"))
	if len(faults) > 0 {
		return exitCode(3)
	}
	return nil
}

type rulesExplainCmd struct {
	packsFlags
	ID  string `arg:"" help:"Id of the rule, as 'evenhand rules list' shows it."`
	All bool   `help:"Print the guards that all rules of the pack share, too, and the lists that the rule names."`
}

func (rulesExplainCmd) Help() string {
	return `Knows the shipped rules and those of rules.dir, detect.gate_rules and detect.gate_extra_rules in the settings. A kind that has one rule stands for it: gate.financial.

Example:
  evenhand rules explain sex.stereotype.emotional`
}

// Run explains one rule.
func (cmd *rulesExplainCmd) Run(c *cli, std *stdio) error {
	packs, own, err := cmd.inForce(c)
	if err != nil {
		return err
	}
	cmd.ID = soleRule(packs, cmd.ID)
	folded := 0
	for _, r := range rules.All(packs) {
		if r.ID == cmd.ID && !cmd.All { // the guards of a pack fill the screen and are the same for all its rules
			folded, r.Pack.Unless = len(r.Pack.Unless), nil
		}
	}
	text, ok := rules.Explain(packs, cmd.ID, cmd.All)
	if said := explainLearned(cmd.ID); !ok && said != "" {
		fmt.Fprintln(std.out, said)
		return nil
	}
	if !ok {
		return fmt.Errorf("no rule %q%s; 'evenhand rules list' shows all", cmd.ID, nearestRule(packs, cmd.ID))
	}
	fmt.Fprint(std.out, text)
	for _, r := range rules.All(own) {
		switch {
		case r.ID != cmd.ID:
		case r.Pack.ID == gate.CustomPack:
			fmt.Fprintln(std.out, "  Own: of detect.gate_rules or detect.gate_extra_rules.")
		default:
			fmt.Fprintf(std.out, "  Own: pack %s of rules.dir.\n", r.Pack.ID)
		}
	}
	if folded > 0 {
		fmt.Fprintf(std.out, "  Nor when its sentence matches one of the pack's %s (--all shows them).\n", count(folded, "guard"))
	}
	return nil
}

// explainLearned says what findings are of that no pack has a rule for; "" of others.
func explainLearned(id string) string {
	family, rest, _ := strings.Cut(id, ".")
	switch {
	case id == classifier.EncoderRule:
		return id + `

  No pattern: an encoder, a learned model, read the sentence and holds it for biased, toxic or harmful. The finding's kind says which, its
  version which model and effort (classifier.encoder), its confidence how sure. It warns and never blocks by itself. See docs/detection.md, The encoder.`
	case family == classifier.ID && slices.ContainsFunc(classifier.Heads(), func(h classifier.Head) bool { return h.String() == rest }):
		return id + `

  No pattern: the classifier, a learned model, holds the sentence for ` + rest + `; the evidence is the clause that decided. It warns and never
  blocks by itself. See docs/detection.md, The classifier.`
	case family == terms.ID && rest != "":
		return id + `

  A phrase of the list of biased terms, found as a plain substring whatever its case: built-in ones and those of detect.terms_custom.
  See docs/detection.md.`
	}
	return ""
}

// soleRule gives the id of the only rule of a kind, which findings show as their category: gate.financial is that of rule financial. Other ids stay.
func soleRule(packs []*rules.Pack, id string) string {
	var ids []string
	for _, r := range rules.All(packs) {
		if r.ID == id {
			return id
		}
		if r.Kind == id {
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 1 {
		return ids[0]
	}
	return id
}

// nearestRule names the id that was meant, if one is near.
func nearestRule(packs []*rules.Pack, id string) string {
	if slices.Contains(kinds(packs), id) {
		return ", but a kind of several: 'evenhand rules list --kind " + id + "' shows them"
	}
	var ids []string
	for _, r := range rules.All(packs) {
		ids = append(ids, r.ID)
	}
	if near := ingest.Nearest(id, ids); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

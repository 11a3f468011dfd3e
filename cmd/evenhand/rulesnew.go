package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

type rulesNewCmd struct {
	Ground   string `help:"Ground of the pack, such as sex." xor:"for" placeholder:"GROUND"`
	Category string `help:"Or its safety category, such as violence." xor:"for" placeholder:"NAME"`
	Wording  string `help:"Or its kind of wording, such as job_advert_wording." xor:"for" placeholder:"KIND"`
	Language string `help:"Language as a BCP 47 tag." default:"en" placeholder:"TAG"`
	Dir      string `help:"Folder to write to; made when it is absent." default:"." type:"path" placeholder:"DIR"`
}

func (rulesNewCmd) Help() string {
	return `Writes NAME.TAG.yaml, a pack with one rule to fill in; 'evenhand rules lint' names what is left to do. Nothing is overwritten: exit status 2 where the file is there. A pack for what
a shipped one is for gets ids of its own, so that rules.dir takes it. Classes that a common.TAG.yaml in the folder has for a language with no
shipped classes become a rule each, if its lexicon (terms.TAG.yaml in the folder) has terms of the ground.

Examples:
  evenhand rules new --ground age --language de --dir packs
  evenhand rules new --wording job_advert_wording --dir packs
  evenhand rules new --category violence --language sv --dir packs`
}

// draft checks the flags and names every fault of them.
func (cmd *rulesNewCmd) draft() (rules.Draft, error) {
	d := rules.Draft{Ground: audit.Ground(cmd.Ground), Category: cmd.Category, Wording: cmd.Wording, Language: cmd.Language}
	grounds := make([]string, len(audit.Grounds))
	for i, g := range audit.Grounds {
		grounds[i] = string(g)
	}
	kinds := slices.Sorted(maps.Keys(audit.WordingSeverity))
	var errs []error
	is := func(flag, value string, of []string) {
		if value == "" || slices.Contains(of, value) {
			return
		}
		err := fmt.Errorf("--%s: %q is not one of %s", flag, value, audit.List(of))
		if slices.Contains(audit.SafetyCategories, value) {
			err = fmt.Errorf("--%s: %q is a safety category: --category %s", flag, value, value)
		} else if slices.Contains(kinds, value) {
			err = fmt.Errorf("--%s: %q is a kind of wording: --wording %s", flag, value, value)
		}
		errs = append(errs, err)
	}
	is("ground", cmd.Ground, grounds)
	is("category", cmd.Category, audit.SafetyCategories)
	is("wording", cmd.Wording, kinds)
	if cmd.Ground+cmd.Category+cmd.Wording == "" {
		errs = append(errs, errors.New("one of --ground, --category and --wording is missing"))
	}
	if problem := rules.LanguageProblem(cmd.Language); problem != "" {
		errs = append(errs, fmt.Errorf("--language: %s", problem))
	}
	if len(errs) > 0 {
		return d, &settingsError{errors.Join(errs...)}
	}
	return d, nil
}

// Run writes the skeleton of a pack.
func (cmd *rulesNewCmd) Run(std *stdio) error {
	d, err := cmd.draft()
	if err != nil {
		return err
	}
	shipped, err := shippedPacks()
	if err != nil {
		return err
	}
	classes := map[string]bool{} // that shipped packs of the language make rules of, for every ground
	for _, p := range shipped {
		d.Own = d.Own || p.ID == d.PackID()
		if p.Common != nil && p.Language == d.Language {
			for name := range p.Common.Classes {
				classes[name] = true
			}
		}
	}
	if err := os.MkdirAll(cmd.Dir, 0o755); err != nil {
		return &settingsError{fmt.Errorf("--dir: %w", err)}
	}
	common, lexicon, err := rules.Shared(os.DirFS(cmd.Dir), d.Language)
	if err != nil {
		return err
	}
	if common != nil && d.Ground != "" {
		if lexicon != nil && len(lexicon.Terms(d.Ground)) > 0 {
			for name := range common.Classes {
				if !classes[name] {
					d.Classes = append(d.Classes, name)
				}
			}
			slices.Sort(d.Classes)
		} else {
			fmt.Fprintf(std.err, "no lexicon of %[1]s has terms of %[2]s: add them to terms.%[1]s.yaml, and then a line for each class of common.%[1]s.yaml\n", d.Language, d.Ground)
		}
	}
	path := filepath.Join(cmd.Dir, fmt.Sprintf("%s.%s.yaml", cmd.Ground+cmd.Category+cmd.Wording, d.Language))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &settingsError{fmt.Errorf("%s is there already; nothing was written", path)}
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(rules.Skeleton(d))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s\n", path)
	return nil
}

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
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/rules"
)

type rulesNewCmd struct {
	Ground   string `help:"Ground of the pack, such as sex." required:"" placeholder:"GROUND"`
	Language string `help:"Language as a BCP 47 tag." default:"en" placeholder:"TAG"`
	Dir      string `help:"Folder to write to." default:"." type:"existingdir" placeholder:"DIR"`
}

func (rulesNewCmd) Help() string {
	return `Writes GROUND.TAG.yaml and, for a language with shared classes, common.TAG.yaml beside it. Nothing is overwritten.

Example:
  evenhand rules new --ground age --language de --dir packs`
}

// Run writes the skeleton of a pack.
func (cmd *rulesNewCmd) Run(std *stdio) error {
	g := audit.Ground(cmd.Ground)
	if !slices.Contains(audit.Grounds, g) {
		return &settingsError{fmt.Errorf("--ground: %q is not one of %v", cmd.Ground, audit.Grounds)}
	}
	packs, err := rules.Load(bias.Packs())
	if err != nil {
		return err
	}
	var common *rules.Common
	for _, p := range packs {
		if p.Language == cmd.Language {
			common = p.Common
		}
	}
	files := map[string][]byte{fmt.Sprintf("%s.%s.yaml", g, cmd.Language): []byte(rules.Skeleton(g, cmd.Language, common))}
	if common != nil {
		name := fmt.Sprintf("common.%s.yaml", cmd.Language)
		raw, err := fs.ReadFile(bias.Packs(), "packs/"+name)
		if err != nil {
			return err
		}
		files[name] = raw
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(cmd.Dir, name)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			fmt.Fprintf(std.out, "%s is there already\n", path)
			continue
		}
		if err != nil {
			return err
		}
		_, err = f.Write(files[name])
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		fmt.Fprintf(std.out, "%s\n", path)
	}
	return nil
}

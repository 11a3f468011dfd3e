package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/rules"
)

type rulesNewCmd struct {
	Ground   string `help:"Ground of the pack, such as sex." required:"" placeholder:"GROUND"`
	Language string `help:"Language as a BCP 47 tag." default:"en" placeholder:"TAG"`
	Dir      string `help:"Folder to write to; made when it is absent." default:"." type:"path" placeholder:"DIR"`
}

func (rulesNewCmd) Help() string {
	return `Writes GROUND.TAG.yaml and, for a language with shared classes, common.TAG.yaml beside it. Nothing is overwritten. A pack for a ground and language
that a shipped one has gets ids of its own, so that rules.dir takes it.

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
	id := fmt.Sprintf("charter.%s.%s", g, cmd.Language)
	for _, p := range packs {
		if p.Language == cmd.Language {
			common = p.Common
		}
	}
	text := rules.Skeleton(g, cmd.Language, common)
	if slices.ContainsFunc(packs, func(p *rules.Pack) bool { return p.ID == id }) {
		own := fmt.Sprintf("%s.own.%s", g, cmd.Language)
		text = strings.NewReplacer("pack: "+id, "pack: charter."+own, fmt.Sprintf("id: %s.%s.", g, cmd.Language), "id: "+own+".").Replace(text)
	}
	files := map[string][]byte{fmt.Sprintf("%s.%s.yaml", g, cmd.Language): []byte(text)}
	if common != nil {
		name := fmt.Sprintf("common.%s.yaml", cmd.Language)
		raw, err := fs.ReadFile(bias.Packs(), "packs/"+name)
		if err != nil {
			return err
		}
		files[name] = raw
	}
	if err := os.MkdirAll(cmd.Dir, 0o755); err != nil {
		return &settingsError{fmt.Errorf("--dir: %w", err)}
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

package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is set by the linker for tagged builds.
var release = ""

// version is the release, or the commit that the binary was built from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	rev, dirty := "devel", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	return rev + dirty
}

type versionCmd struct {
	JSON bool `help:"Print JSON." name:"json"`
}

// Run prints the version.
func (cmd *versionCmd) Run(io *stdio) error {
	if cmd.JSON {
		return json.NewEncoder(io.out).Encode(map[string]string{"version": version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
	}
	fmt.Fprintln(io.out, banner())
	return nil
}

func banner() string {
	return fmt.Sprintf("evenhand %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

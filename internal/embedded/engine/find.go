package engine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/evenhand/evenhand/audit"
)

// Version is the release of the engine library that Evenhand is built and tested with;
// tools/engine/fetch.sh fetches the same.
const Version = "26.7.3-stable.1"

// LibraryEnv names the environment variable that points at a library kept elsewhere.
const LibraryEnv = "EVENHAND_ENGINE_LIB"

const library = "libchdb.so"

// Find gives the path of the engine library: explicit (the setting engine.lib), else the
// environment variable EVENHAND_ENGINE_LIB, else the user's cache, where `make engine` puts it.
// Every error is audit.KindInvalid, names what the operator set and says the one thing to do.
func Find(explicit string) (string, error) {
	const op = "embedded/engine: find library"
	if err := supported(); err != nil {
		return "", audit.E(op, audit.KindInvalid, err)
	}
	cached, err := cachePath()
	if err != nil {
		return "", audit.E(op, audit.KindInvalid, err)
	}
	path, from := cached, ""
	fromEnv := os.Getenv(LibraryEnv)
	switch {
	case explicit != "" && explicit != fromEnv: // the settings hold the variable's value too
		path, from = explicit, "engine.lib"
	case fromEnv != "":
		path, from = fromEnv, LibraryEnv
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.Mode().IsRegular():
		return path, nil
	case err == nil:
		err = errors.New("is not a file")
	case errors.Is(err, os.ErrNotExist):
		err = errors.New("is not there")
	}
	if from == "" {
		return "", audit.E(op, audit.KindInvalid, fmt.Errorf("the engine library %s %w; run: make engine", path, err))
	}
	return "", audit.E(op, audit.KindInvalid, fmt.Errorf("%s: %s %w; unset it and run: make engine", from, path, err))
}

// cachePath is ${XDG_CACHE_HOME:-~/.cache}/evenhand/engine/<version>/libchdb.so.
func cachePath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; set HOME, XDG_CACHE_HOME or %s", err, LibraryEnv)
	}
	return filepath.Join(dir, "evenhand", "engine", Version, library), nil
}

// supported fails where the library does not exist.
func supported() error {
	if runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		return nil
	}
	return fmt.Errorf("the embedded store runs on linux/amd64 only, this is %s/%s; use: docker compose up", runtime.GOOS, runtime.GOARCH)
}

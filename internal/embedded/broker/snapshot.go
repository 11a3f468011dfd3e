package broker

import (
	"errors"
	"io/fs"
	"os"
)

// mendSnapshots will be filled next.
func mendSnapshots(dir string) error {
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

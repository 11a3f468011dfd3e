package encoder

import (
	_ "embed"
	"sync"
)

//go:embed model.bin
var shipped []byte

// Shipped is the model that comes with the program; model.md is its card. It is read once.
var Shipped = sync.OnceValues(func() (*Model, error) { return Decode(shipped) })

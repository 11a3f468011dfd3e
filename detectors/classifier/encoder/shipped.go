package encoder

import (
	_ "embed"
	"sync"
)

//go:embed model.bin
var shipped []byte

//go:embed others.bin
var shippedOthers []byte

// Shipped is the model of English that comes with the program; model.md is its card. It is read once.
var Shipped = sync.OnceValues(func() (*Model, error) { return Decode(shipped) })

// ShippedOthers is the model of other languages that comes with the program; others.md is its card. It is read once.
var ShippedOthers = sync.OnceValues(func() (*Model, error) { return Decode(shippedOthers) })

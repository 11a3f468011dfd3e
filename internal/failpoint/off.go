//go:build !failpoints

package failpoint

// Enabled tells whether this binary can be ended at a point.
const Enabled = false

// Hit does nothing in this build.
func Hit(name, of string) {}

//go:build !race

package scan

func (s *stride) run() { runAMD64(s) }

// runAMD64 is run in assembly. The race detector would not see what it reads.
//
//go:noescape
func runAMD64(s *stride)

//go:build !amd64 || race

package scan

func (s *stride) run() { s.runGo() }

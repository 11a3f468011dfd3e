//go:build amd64 && !linux

package kernel

func hasAMX() bool { return false }

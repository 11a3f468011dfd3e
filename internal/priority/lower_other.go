//go:build !linux

package priority

func lower() {}

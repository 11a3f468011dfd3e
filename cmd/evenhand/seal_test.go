package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/seal"
)

// The compose file's keys include one that signs seals: made once, its user's alone.
func TestTheComposedSealKey(t *testing.T) {
	b, err := os.ReadFile("../../deploy/compose/keys.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, sub := range []string{"keys", "users.d"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	script := strings.NewReplacer("/keys/", dir+"/keys/", "/users.d/", dir+"/users.d/", "chown ", ": ").Replace(string(b))
	var ids []string
	for range 2 {
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		key, err := seal.LoadKey(filepath.Join(dir, "keys", "seal.key"))
		if err != nil {
			t.Fatal(err)
		}
		digest := [32]byte{1}
		public := seal.Public{}
		public.Add(key.Public())
		if !public.Verify(key.ID(), digest[:], key.Sign(digest)) {
			t.Error("its signature does not verify")
		}
		ids = append(ids, key.ID())
	}
	if ids[0] != ids[1] {
		t.Errorf("made twice: %v", ids)
	}
}

// What is wrong with the key is said before a process starts, with the key of the setting and the mend.
func TestSealKeyFaults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "seal.key")
	s := settings{DataDir: t.TempDir(), Seal: sealSettings{KeyFile: file}}
	says := func(want string) {
		t.Helper()
		if err := s.validateFiles(); err == nil || !strings.Contains(err.Error(), "seal.") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	says("openssl genpkey -algorithm ed25519")
	if err := os.WriteFile(file, []byte("no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	says("is no key in PEM")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	says("chmod 600")
	s.Seal = sealSettings{PublicKeys: []string{file}}
	says("seal.public_keys: ")
}

package auth

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

func TestDevelopmentKeyFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := LoadDevKey(dir); audit.KindOf(err) != audit.KindInvalid || !strings.Contains(err.Error(), "makes it on its first start") {
		t.Fatal(err)
	}
	made := make([]*DevKey, 8)
	var wg sync.WaitGroup
	for i := range made { // starts at once agree on one key
		wg.Go(func() {
			var err error
			if made[i], err = MakeDevKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range made {
		if k == nil || k.id != made[0].id || !k.private.Equal(made[0].private) {
			t.Fatal("two starts made two keys")
		}
	}
	file := devKeyFile(dir)
	for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
	if left, err := filepath.Glob(file + ".*"); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	loaded, err := LoadDevKey(dir)
	if err != nil || loaded.id != made[0].id {
		t.Fatal(err)
	}
	token, err := loaded.Sign("acme", "ann", []Role{Admin}, time.Hour, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	again := open(t, Config{Required: true, Dev: made[1]})
	if p, err := again.Authenticate(request(token)); err != nil || !p.Can(Administer) {
		t.Errorf("%+v, %v", p, err)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeDevKey(dir); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Error(err)
	}
	for _, content := range []string{"", "junk", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.Chmod(file, 0o600)
		if _, err := LoadDevKey(dir); audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// open is an authenticator by the real clock.
func open(t *testing.T, c Config) *Authenticator {
	t.Helper()
	return made(t, c, Options{})
}

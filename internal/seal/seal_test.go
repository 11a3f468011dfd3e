package seal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// Stored seals hang on the forms: version 1 never changes.
func TestFormsOfVersion1(t *testing.T) {
	var b []byte
	b = AppendText(b, "ü:1,")
	b = AppendFixed(b, "a", 2)
	b = AppendUUID(b, uuid.MustParse("3b1c5e0a-6d5f-4e0b-9c1d-65766e656864"))
	b = AppendNumber(b, -5)
	b = AppendUnsigned(b, 1<<64-1)
	b = AppendDay(b, time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC))
	b = AppendTexts(b, []string{"", "a"})
	b = AppendNumbers(b, []uint8{0, 200})
	b = AppendNumbers(b, []int64{-1})
	b = AppendNumbers(b, []uint64(nil))
	const want = "5:ü:1,4:610036:3b1c5e0a-6d5f-4e0b-9c1d-65766e656864-5,18446744073709551615,20786,2:0:1:a2:0,200,1:-1,0:"
	if string(b) != want {
		t.Errorf("got  %q\nwant %q", b, want)
	}
	if got := Hash([]byte(want)); got != 0x72c92f9498b2c1a5 {
		t.Errorf("hash %#x", got)
	}
	b = b[:0]
	yes, no := true, false
	for _, is := range []*bool{&yes, &no, nil} {
		b = AppendMaybe(b, is)
	}
	b = AppendDays(b, []time.Time{time.Unix(0, 0), time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)})
	if string(b) != "1,0,,2:0,20786," {
		t.Errorf("got  %q", b)
	}
	for _, x := range []struct {
		form Form
		want uint64 // of its prefix and columns
	}{
		{Event, 0x976a546d437df412}, {Interaction, 0xa2b61aaa0252cb10}, {Verdict, 0x485953e7b9a0f6e8}, {Marker, 0x35621b249df1fcfc},
		{Facts[0].Form, 0x54f3656b686ac3de}, {Facts[1].Form, 0x1564e72a91001ce7}, {Facts[2].Form, 0x8a14630086367924}, {Facts[3].Form, 0xd817099d83ea90d}, {Facts[4].Form, 0xd28974b93d1f7a4c}, {Facts[5].Form, 0x64391a9acbd385ce},
		{Facts[0].Name(), 0xf947720f8804e8e4}, {Facts[1].Name(), 0xd0d0c075aa10005d}, {Facts[2].Name(), 0x5029120047173744}, {Facts[3].Name(), 0xcb3314138a2e5f03}, {Facts[4].Name(), 0x5ac4c87e8c8ac2cf}, {Facts[5].Name(), 0xb4158ca26b627ed2},
		{Ledger, 0xa708c44b4534ac5f}, {Tenant, 0xb2861509159f1772}, {Writer, 0x24aff3bbfab7ad0c},
	} {
		var names []string
		for _, c := range x.form.Columns {
			names = append(names, c.Name+string(rune('0'+c.Kind)))
		}
		if got := Hash([]byte(x.form.Prefix + strings.Join(names, ","))); got != x.want {
			t.Errorf("%q has changed, %#x: seals that stores have would not agree any more; make a version 2 and keep this one for them", x.form.Prefix, got)
		}
	}
}

// A key is made once, is its user's alone, and what it signs its public half verifies.
func TestKey(t *testing.T) {
	dir := t.TempDir()
	k, err := MakeKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := MakeKey(dir)
	if err != nil || again.ID() != k.ID() {
		t.Fatalf("%v %v", again, err)
	}
	known, err := Load(dir, nil)
	if err != nil || len(known) != 1 {
		t.Fatal(known, err)
	}
	digest := [32]byte{1}
	signature := k.Sign(digest)
	if !known.Verify(k.ID(), digest[:], signature) || known.Verify("other", digest[:], signature) || known.Verify(k.ID(), make([]byte, 32), signature) || known.Verify(k.ID(), digest[:], nil) {
		t.Error("verified wrongly")
	}
	elsewhere, err := Load(t.TempDir(), []string{filepath.Join(dir, "seal", "seal.pub")})
	if err != nil || !elsewhere.Verify(k.ID(), digest[:], signature) {
		t.Error("the public half alone does not verify", err)
	}
	if _, err := Load(t.TempDir(), []string{filepath.Join(dir, "seal", "seal.key")}); err == nil || !strings.Contains(err.Error(), "seal.public_keys") {
		t.Errorf("a private key for a public one: %v", err)
	}
	if err := os.Chmod(keyFile(dir), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := MakeKey(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key for all to read: %v", err)
	}
}

// Who deletes a key, for a new one or because it was not in the backup, can still prove what it signed.
func TestTheKeyThatWasGoneStaysKnown(t *testing.T) {
	dir, digest := t.TempDir(), [32]byte{1}
	signed := map[string][]byte{}
	for range 3 {
		k, err := MakeKey(dir)
		if err != nil {
			t.Fatal(err)
		}
		signed[k.ID()] = k.Sign(digest)
		if err := os.WriteFile(keyFile(dir), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := MakeKey(dir); err == nil || !strings.Contains(err.Error(), "is no key in PEM, or delete it") {
			t.Errorf("an empty file: %v", err)
		}
		if err := os.Remove(keyFile(dir)); err != nil {
			t.Fatal(err)
		}
	}
	known, err := Load(dir, nil)
	if err != nil || len(known) != 3 || len(signed) != 3 {
		t.Fatal(known, err)
	}
	for id, signature := range signed {
		if !known.Verify(id, digest[:], signature) {
			t.Errorf("what %s signed is no longer proved", id)
		}
	}
}

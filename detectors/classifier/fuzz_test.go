package classifier

import (
	"crypto/sha256"
	"testing"

	"github.com/evenhand/evenhand/audit"
)

// FuzzDecode: whatever the bytes, an error or a model that can be asked. The digest is mended so that the
// fuzzer gets past it.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(magic + "\x02\x00\x00\x00{}"))
	f.Add([]byte(magic + "\xff\xff\xff\xff"))
	f.Add([]byte(magic + `` + "\x40\x00\x00\x00" + `{"heads":[{"name":"bias","a":1,"b":0,"threshold":2}],"gate":1e999}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, file []byte) {
		sum := sha256.Sum256(file)
		for _, b := range [][]byte{file, append(append([]byte(nil), file...), sum[:]...)} {
			m, err := Decode(b)
			if err != nil {
				if audit.KindOf(err) != audit.KindInvalid {
					t.Fatal(err)
				}
				continue
			}
			var s scratch
			ts := tokensOf("Women cannot drive.")
			m.look(&s, ts, m.first(gateFeatures(nil, ts), len(ts)))
		}
	})
}

// FuzzWords: tokens are those read letter by letter and lie in the text, in order, whatever the bytes.
func FuzzWords(f *testing.F) {
	f.Add("People over 50 don't – “ever” 日本\xff")
	f.Fuzz(func(t *testing.T, text string) {
		comparePlain(t, text, 0, len(text))
		comparePlainFold(t, text)
		last := int32(0)
		for _, tok := range tokensOf(text) {
			if tok.start < last || tok.end <= tok.start || int(tok.end) > len(text) {
				t.Fatalf("token [%d,%d) after %d", tok.start, tok.end, last)
			}
			last = tok.end
		}
	})
}

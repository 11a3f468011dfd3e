package call

import (
	"bytes"
	"slices"
	"strconv"
)

// bulk is the length from which a string may be an image, a sound or a file; shorter ones are kept.
const bulk = 1 << 10

// Members that hold bytes in base64 where they are long, and those whose text may be anything.
var (
	packs = [...]string{"data", "b64_json", "file_data", "bytes", "base64", "result", "audio", "image", "partial_image_b64"}
	texts = [...]string{"content", "text", "arguments", "input"}
)

var base64Mark = []byte(";base64,")

// Packed tells a member of JSON that holds an image, a sound or a file and no text: base64 of 1 KiB and more under a name for such, or
// such a data URI under any name but those of texts.
func Packed(name string, s []byte) bool {
	switch {
	case len(s) < bulk:
		return false
	case slices.Contains(packs[:], name) && letters(s):
		return true
	}
	at := uri(s)
	return at > 0 && !slices.Contains(texts[:], name) && letters(s[at:])
}

// LeftOut is what stands in the place of a packed string: its media type, where it tells that itself, and how many bytes it had unpacked.
func LeftOut(s []byte) string {
	kind, at := "", uri(s)
	if at > 0 {
		kind = string(s[len("data:"):at-len(base64Mark)]) + ", "
	}
	return "(left out: " + kind + strconv.Itoa((len(s)-at)*3/4) + " bytes)"
}

// uri gives where the base64 of a data URI begins; 0 is none.
func uri(s []byte) int {
	if !bytes.HasPrefix(s, []byte("data:")) {
		return 0
	}
	if at := bytes.Index(s[:min(len(s), 256)], base64Mark); at > 0 {
		return at + len(base64Mark)
	}
	return 0
}

// letters tells a string of the letters of base64 alone, of either alphabet.
func letters(s []byte) bool {
	for _, c := range s {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' && c != '=' {
			return false
		}
	}
	return true
}

package call

import (
	"bytes"
	"encoding/json"
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

// Named gives a member of JSON, as it is decoded, with the bytes of images, sounds and files inside it named only; left tells whether there were any.
// It changes what it is given.
func Named(name string, v any) (out any, left bool) {
	switch x := v.(type) {
	case string:
		if len(x) < bulk {
			return v, false
		}
		if b := []byte(x); Packed(name, b) {
			return LeftOut(b), true
		}
	case map[string]any:
		for k := range x {
			var some bool
			x[k], some = Named(k, x[k])
			left = left || some
		}
	case []any:
		for i := range x {
			var some bool
			x[i], some = Named(name, x[i])
			left = left || some
		}
	}
	return v, left
}

// Unpacked gives JSON with the bytes of images, sounds and files inside it named only; JSON without any as it came.
func Unpacked(name string, raw json.RawMessage) json.RawMessage {
	if len(raw) < bulk {
		return raw
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	v, left := Named(name, v)
	if !left {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
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

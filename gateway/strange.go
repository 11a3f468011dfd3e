package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest"
)

// notText are members that hold no words of a model: what they are called by, and what is packed.
var notText = []string{"type", "id", "call_id", "index", "format", "mime_type", "media_type", "signature", "thought_signature", "encrypted_content", "data", "url", "b64_json", "file_data", "status", "role", "modality", "uri", "file_id"}

// strange gives every text inside an object but in its known members: what is of a shape that we do not know is read nevertheless, so that
// nothing passes only because a provider has a name of its own for it.
func strange(v gjson.Result, known []string, put func(gjson.Result)) {
	v.ForEach(func(name, value gjson.Result) bool {
		if plain := strings.Trim(name.Raw, `"`); !slices.Contains(known, plain) && !slices.Contains(notText, plain) {
			texts(value, put)
		}
		return true
	})
}

// strangely gives the texts of [strange], one a line.
func strangely(v gjson.Result, known ...string) string {
	var all []string
	strange(v, known, func(s gjson.Result) { all = append(all, s.String()) })
	return strings.Join(all, "\n")
}

// texts gives every text inside a value, but for images and the like.
func texts(v gjson.Result, put func(gjson.Result)) {
	switch {
	case v.Type == gjson.String:
		if s := v.String(); s != "" && !encoded(s) {
			put(v)
		}
	case v.IsArray():
		v.ForEach(func(_, e gjson.Result) bool {
			texts(e, put)
			return true
		})
	case v.IsObject():
		strange(v, nil, put)
	}
}

// encoded tells an image, a sound or a file in a string: base64 of some length.
func encoded(s string) bool {
	if strings.HasPrefix(s, "data:") {
		_, s, _ = strings.Cut(s, ",")
	}
	if len(s) < bulk {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '+' && c != '/' && c != '-' && c != '_' && c != '=' {
			return false
		}
	}
	return true
}

// requested gives what a call asks its tool for: a text that stands alone as it is, else an object of all that it is asked with.
func requested(call gjson.Result) string {
	var names []string
	values := map[string]gjson.Result{}
	call.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		_, twice := values[name]
		nothing := value.Type == gjson.Null || value.Raw == `""` || value.Type == gjson.String && encoded(value.String())
		if !twice && !nothing && !ingest.Label(name) {
			names, values[name] = append(names, name), value
		}
		return true
	})
	if len(names) == 1 {
		return wordsOf(values[names[0]])
	}
	var b bytes.Buffer
	for i, name := range names {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(quoted(name))
		b.WriteByte(':')
		b.WriteString(values[name].Raw)
	}
	if len(names) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

package gateway

import (
	"bytes"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/evenhand/evenhand/ingest"
)

// notText are members that hold no words of a model: what they are called by, and what is packed.
var notText = []string{"type", "id", "call_id", "index", "format", "mime_type", "media_type", "signature", "encrypted_content", "data", "url", "b64_json", "file_data", "status", "role"}

// strange gives every text inside an object but in its known members: what is of a shape that we do not know is read nevertheless, so that
// nothing passes only because a provider has a name of its own for it.
func strange(v gjson.Result, known []string, put func(string)) {
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
	strange(v, known, func(s string) {
		if s != "" {
			all = append(all, s)
		}
	})
	return strings.Join(all, "\n")
}

// texts gives every text inside a value.
func texts(v gjson.Result, put func(string)) {
	switch {
	case v.Type == gjson.String:
		put(v.String())
	case v.IsArray():
		v.ForEach(func(_, e gjson.Result) bool {
			texts(e, put)
			return true
		})
	case v.IsObject():
		strange(v, nil, put)
	}
}

// requested gives what a call asks its tool for: a text that stands alone as it is, else an object of all that it is asked with.
func requested(call gjson.Result) string {
	var names []string
	values := map[string]gjson.Result{}
	call.ForEach(func(name, value gjson.Result) bool {
		packed := value.Type == gjson.String && len(value.Raw) > bulk && !strings.ContainsAny(value.Raw, " ") // an image
		if _, twice := values[name.String()]; !twice && !packed {
			names, values[name.String()] = append(names, name.String()), value
		}
		return true
	})
	asked := ingest.Requested(names)
	if len(asked) == 1 {
		return values[asked[0]].String()
	}
	var b bytes.Buffer
	for i, name := range asked {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(quoted(name))
		b.WriteByte(':')
		b.WriteString(values[name].Raw)
	}
	if len(asked) > 0 {
		b.WriteByte('}')
	}
	return b.String()
}

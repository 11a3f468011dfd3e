package gateway

import (
	"cmp"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// bulk is the size from which a part without text (an image, a sound, a file) is named and not kept.
const bulk = 1 << 10

// contentOf gives a message's content as the event takes it: a string, or parts; nil for none.
func contentOf(raw []byte, param string) (json.RawMessage, *fault) {
	v := gjson.ParseBytes(raw)
	switch {
	case len(raw) == 0 || v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		return raw, nil
	case v.IsObject(): // what a tool gave, such as a picture of a screen
		part, f := partOf(raw, param)
		return append(append([]byte{'['}, part...), ']'), f
	case !v.IsArray():
		return quoted(string(raw)), nil
	}
	parts, f := elements(raw, param)
	if f != nil {
		return nil, f
	}
	out := []byte{'['}
	for i, p := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		part, f := partOf(p, param)
		if f != nil {
			return nil, f
		}
		out = append(out, part...)
	}
	return append(out, ']'), nil
}

// untexts are members of a part of a message that say what it shows or where that is, and no words.
var untexts = append([]string{"file", "filename", "input_audio", "video_url", "annotations", "logprobs", "cache_control", "tool_use_id"}, labels...)

// partOf gives a part of a message as the event takes it. Of one of a shape that we do not know, such as what a command wrote, the text is kept.
func partOf(p []byte, param string) ([]byte, *fault) {
	part := gjson.ParseBytes(p)
	switch {
	case part.Type == gjson.String:
		return p, nil
	case !part.IsObject():
		return quoted(string(p)), nil
	}
	fields, f := object(p, maxDepth, param)
	if f != nil {
		return nil, f
	}
	if f := otherLetters(fields, param+"[].", "text"); f != nil {
		return nil, f
	}
	text, kind := gjson.ParseBytes(fields["text"]), gjson.ParseBytes(fields["type"]).String()
	if text.Str != "" {
		return p, nil
	}
	if s := strangely(part, untexts...); s != "" {
		return encode(map[string]any{"type": cmp.Or(kind, "text"), "text": s}), nil
	}
	if len(p) > bulk || text.Type != gjson.String && (fields["text"] != nil || kind == "text") {
		return encode(map[string]any{"type": kind + " (left out)", "bytes": len(p)}), nil
	}
	return p, nil
}

package litellm

import "strings"

// generates are the types of call (CallTypes of litellm/types/utils.py) that make text. Another type counts when its
// answer has the shape of one, as that of a provider's own route has.
var generates = map[string]bool{
	"completion": true, "acompletion": true, "text_completion": true, "atext_completion": true,
	"responses": true, "aresponses": true, "_aresponses_websocket": true,
	"anthropic_messages": true, "aanthropic_messages": true,
	"generate_content": true, "agenerate_content": true, "generate_content_stream": true, "agenerate_content_stream": true,
}

// kind puts a type of call that is no model's into one of few words: it becomes a label of a metric.
func kind(callType string) string {
	for _, k := range []struct{ part, kind string }{
		{"embedding", "embedding"}, {"image", "image"}, {"video", "image"}, {"speech", "audio"}, {"transcription", "audio"}, {"realtime", "audio"},
		{"moderation", "moderation"}, {"rerank", "rerank"},
	} {
		if strings.Contains(callType, k.part) {
			return k.kind
		}
	}
	return "other"
}

package replay

import (
	_ "embed"
	"encoding/json"
	"strings"
)

// Note is one thing that the validator found. Its words may hold text of the response.
type Note struct {
	Issue   string `json:"issue"`
	Excerpt string `json:"excerpt,omitempty"` // where, in the response's own words
	Advice  string `json:"advice,omitempty"`  // what to write instead
}

// Feedback is what the model is told beside the original call.
type Feedback struct{ Notes []Note }

//go:embed feedback.txt
var feedbackText string

// Bounds of what is told: a model needs the worst, not all.
const (
	maxNotes = 20
	maxWords = 500 // code points of each field
)

// Message puts it in words, for a message of the system or the user behind those of the original call. The notes are JSON:
// they quote the response, which may have been made to give orders.
func (f Feedback) Message() string {
	notes := make([]Note, min(len(f.Notes), maxNotes))
	for i := range notes {
		n := f.Notes[i]
		notes[i] = Note{shorten(n.Issue), shorten(n.Excerpt), shorten(n.Advice)}
	}
	b, _ := json.Marshal(notes) // texts: cannot fail
	return strings.TrimSpace(feedbackText) + "\n" + string(b)
}

func shorten(s string) string {
	n := 0
	for i := range s {
		if n == maxWords {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

package compliance

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/schemas/judge"
)

//go:embed prompt
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompt/*.txt"))

// PromptVersion names what a model is asked: a digest of the prompts and of the schema.
var PromptVersion = func() string {
	h := sha256.New()
	for _, name := range []string{"system.txt", "user.txt", "repair.txt"} {
		b, _ := promptFiles.ReadFile("prompt/" + name) // embedded: cannot fail
		_, _ = fmt.Fprintf(h, "%s\x00%d\x00%s", name, len(b), b)
	}
	_, _ = h.Write(judge.Verdict)
	return "c1-" + hex.EncodeToString(h.Sum(nil)[:6])
}()

// marks are what a text cannot know: the name of its delimiters, and words of the system prompt that no answer holds.
type marks struct{ Nonce, Canary string }

func newMarks(random io.Reader) (m marks, err error) {
	var b [32]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return m, err
	}
	return marks{hex.EncodeToString(b[:16]), "canary-" + hex.EncodeToString(b[16:])}, nil
}

func render(name string, data any) string {
	var b bytes.Buffer
	if err := prompts.ExecuteTemplate(&b, name, data); err != nil {
		return "" // the templates are ours and tested
	}
	return b.String()
}

// system is the system prompt of one call. What changes from call to call stands at its end.
func (m marks) system() string { return render("system.txt", m) }

// user is the message that holds the text: one line of JSON between two lines that the text cannot write, for in the
// string a line break, < and > are escapes.
func (m marks) user(in Input, text string) string {
	b, _ := json.Marshal(text) // a string: cannot fail
	return render("user.txt", struct{ Nonce, Context, Text string }{m.Nonce, in.context(), string(b)})
}

// repair tells a model what its answer lacked.
func repair(lines []string) string { return render("repair.txt", lines) }

var languageTag = regexp.MustCompile(`^[A-Za-z0-9-]{2,35}$`)

// context is what the model is told about where a text comes from. Both words are checked, since callers may have them
// from outside: whatever is no domain and no language tag is left out.
func (in Input) context() string {
	var parts []string
	if _, known := audit.ProfileOf(audit.Domain(in.Domain)); known {
		parts = append(parts, "domain "+in.Domain)
	}
	if languageTag.MatchString(in.Language) {
		parts = append(parts, "language "+in.Language)
	}
	return strings.Join(parts, ", ")
}

package graph

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/evenhand/evenhand/internal/reply"
)

//go:embed playground.html
var playground string

// Playground is a page to try operations on. It loads nothing from anywhere and may speak to this server
// only. It is not for production: see Config.Playground.
func Playground() http.Handler {
	policy := "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'" +
		"; script-src " + hashed(playground, "script") + "; style-src " + hashed(playground, "style")
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		reply.Headers(h, "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("Referrer-Policy", "no-referrer")
		_, _ = w.Write([]byte(playground))
	})
}

// hashed is the source of the page's one element of a name, for its policy.
func hashed(page, element string) string {
	_, rest, _ := strings.Cut(page, "<"+element+">")
	text, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

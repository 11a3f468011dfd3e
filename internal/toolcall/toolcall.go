// Package toolcall tells apart the calls of tools that a streamed answer tells in pieces.
package toolcall

import (
	"cmp"
	"strings"
)

// Call is what the pieces of a call have told of it so far; its arguments are kept by who reads them.
type Call struct {
	ID, Name string
	begun    bool // some of its arguments came
	depth    int  // of open brackets in them
	quoted   bool // a string of them is open
	escaped  bool // a backslash came before
	whole    bool // they are an object from end to end
}

// Over tells whether a piece is of another call than c, which came last under its index. Google's models give all calls of an answer the
// index 0, and each an id of its own; others tell no id, but each call in one piece (Ollama, two calls of one tool, too). A provider that has
// an id for each piece tells the name once.
func (c *Call) Over(id, name, args string) bool {
	switch {
	case id != "" && c.ID != "":
		return id != c.ID && (name != "" || args == "")
	case name != "":
		return c.Name != "" && c.begun && (name != c.Name || c.whole && strings.HasPrefix(strings.TrimSpace(args), "{"))
	}
	return false
}

// Note takes what a piece tells of its call; some providers tell id and name with each piece again.
func (c *Call) Note(id, name, args string) {
	c.ID = cmp.Or(c.ID, id)
	if name != c.Name {
		c.Name += name
	}
	c.begun = c.begun || args != ""
	for i := range len(args) {
		c.follow(args[i])
	}
}

// follow tells where the arguments end.
func (c *Call) follow(b byte) {
	switch {
	case c.escaped:
		c.escaped = false
	case c.quoted:
		c.quoted, c.escaped = b != '"', b == '\\'
	case b == '"':
		c.quoted = true
	case b == '{' || b == '[':
		c.depth, c.whole = c.depth+1, false
	case b == '}' || b == ']':
		c.depth--
		c.whole = c.depth == 0
	}
}

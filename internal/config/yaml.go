package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document parses the one document of a file, and keeps where its keys stand.
type document struct {
	isValue func(key string) bool // the key has a value, which may be a list or map
	lines   map[string]int        // by the keys joined with dots
}

// Unmarshal implements koanf.Parser. Its faults name lines and quote no values.
func (d *document) Unmarshal(b []byte) (map[string]any, error) {
	d.lines = map[string]int{}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var root, next yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, placed(err, b)
	}
	top := root.Content[0]
	out := map[string]any{}
	var errs []error
	switch {
	case top.Kind == yaml.MappingNode:
		d.nest("", top)
		d.note("", top)
		errs = append(errs, placed(top.Decode(&out), b))
	case top.Tag != "!!null":
		errs = append(errs, fmt.Errorf("line %d: wants keys with their values, such as log.level: info", top.Line))
	}
	switch err := dec.Decode(&next); {
	case err == nil && next.Content[0].Tag != "!!null":
		errs = append(errs, fmt.Errorf("line %d: a second document, which nobody would read; write all settings into one, without --- between them", next.Content[0].Line))
	case err != nil && !errors.Is(err, io.EOF):
		errs = append(errs, placed(err, b))
	}
	return out, errors.Join(errs...)
}

// Marshal implements koanf.Parser.
func (*document) Marshal(map[string]any) ([]byte, error) { return nil, errors.ErrUnsupported }

// nest makes groups of keys that are written with dots, as documents write them: kafka.timeout: 2s. What is inside a value has names of its own.
func (d *document) nest(prefix string, n *yaml.Node) {
	var out []*yaml.Node
	groups := map[string]*yaml.Node{}
	group := func(name *yaml.Node) *yaml.Node {
		m := groups[name.Value]
		if m == nil {
			m = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: name.Line, Column: name.Column}
			groups[name.Value], out = m, append(out, name, m)
		}
		return m
	}
	whole := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := *n.Content[i], n.Content[i+1]
		head, rest, dotted := strings.Cut(key.Value, ".")
		switch {
		case dotted && head != "" && rest != "":
			below := key
			key.Value, below.Value = head, rest
			m := group(&key)
			m.Content = append(m.Content, &below, value)
		case value.Kind == yaml.MappingNode && !whole[head]: // once: a second one is the parser's to name
			whole[head] = true
			m := group(&key)
			m.Content = append(m.Content, value.Content...)
		default:
			out = append(out, &key, value)
		}
	}
	n.Content = out
	for name, m := range groups {
		if key := prefix + name; !d.isValue(key) {
			d.nest(key+".", m)
		}
	}
}

func (d *document) note(prefix string, n *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := prefix + n.Content[i].Value
		d.lines[key] = n.Content[i].Line
		if n.Content[i+1].Kind == yaml.MappingNode {
			d.note(key+".", n.Content[i+1])
		}
	}
}

// placed gives a fault of the parser its line, which that leaves out where it is the first, and of anchors.
func placed(err error, file []byte) error {
	if err == nil {
		return nil
	}
	var many *yaml.TypeError
	if errors.As(err, &many) {
		return errors.New(strings.Join(many.Errors, "\n"))
	}
	said := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(said, "line ") {
		return errors.New(said)
	}
	line := 1
	if name, ok := strings.CutPrefix(said, "unknown anchor '"); ok {
		name, _, _ = strings.Cut(name, "'")
		before, _, _ := bytes.Cut(file, []byte("*"+name))
		line += bytes.Count(before, []byte("\n"))
	}
	return fmt.Errorf("line %d: %s", line, said)
}

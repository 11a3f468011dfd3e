package pii

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Memory is what texts have in common that leave one after another: a value that one of them shows to be personal is masked in those
// that come later, with the placeholder that it has. It holds what was masked, so it must not outlive the call that the texts are of.
// The zero value is ready; it is not safe for concurrent use.
type Memory struct {
	numbers Numbers
	values  known
}

// Reserve keeps the placeholders that stand in texts for themselves, wherever in them: no value gets one of these.
func (m *Memory) Reserve(texts []string) {
	for _, text := range texts {
		m.numbers.reserve(text)
	}
}

// Draft gives a copy, for a text that is not whole yet: what is half a number now must not be remembered.
func (m *Memory) Draft() *Memory {
	return &Memory{m.numbers.clone(), m.values.clone()}
}

// Keep remembers that a placeholder, which a draft gave, stands for a value.
func (m *Memory) Keep(value, placeholder string) {
	entity, number := cutPlaceholder(placeholder)
	if n := &m.numbers; n.of[value] == "" {
		n.begin()
		n.of[value] = placeholder
		n.count[entity] = max(n.count[entity], number)
	}
}

// Values gives what the placeholders stand for.
func (m *Memory) Values() map[string]string {
	out := make(map[string]string, len(m.numbers.of))
	for value, placeholder := range m.numbers.of {
		out[placeholder] = value
	}
	return out
}

// EntityOf gives the entity of a numbered placeholder: EMAIL of [EMAIL_1].
func EntityOf(placeholder string) string {
	entity, _ := cutPlaceholder(placeholder)
	return entity
}

func cutPlaceholder(p string) (entity string, number int) {
	p = strings.Trim(p, "[]")
	at := max(0, strings.LastIndexByte(p, '_'))
	number, _ = strconv.Atoi(p[min(at+1, len(p)):])
	return p[:at], number
}

func (n *Numbers) clone() Numbers {
	return Numbers{maps.Clone(n.of), maps.Clone(n.count), maps.Clone(n.taken)}
}

func (k *known) clone() known {
	c := known{entities: maps.Clone(k.entities), sizes: maps.Clone(k.sizes), begins: k.begins}
	for head, sizes := range c.sizes {
		c.sizes[head] = slices.Clip(sizes) // learning more makes a new one
	}
	return c
}

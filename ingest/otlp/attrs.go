package otlp

import (
	"sort"
	"strconv"
	"strings"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
)

// attrs are attributes by name; the first of a name holds. Text that is too much is marked and not read.
type attrs struct {
	list    []*commonpb.KeyValue // in the order sent
	all     map[string]*commonpb.AnyValue
	objects map[string]map[string]any // that were read
	huge    bool
}

func newAttrs(kvs []*commonpb.KeyValue) attrs {
	a := attrs{list: kvs, all: make(map[string]*commonpb.AnyValue, len(kvs))}
	for _, kv := range kvs {
		if _, has := a.all[kv.GetKey()]; !has && kv.GetValue() != nil {
			a.all[kv.GetKey()] = kv.GetValue()
		}
	}
	return a
}

func (a *attrs) has(name string) bool { return a.all[name] != nil }

// text gives the first of the names that holds a text, number or boolean that is not empty, as text.
func (a *attrs) text(names ...string) string {
	for _, n := range names {
		if v := a.all[n]; v != nil {
			if s := scalar(plain(v)); s != "" {
				return s
			}
		}
	}
	return ""
}

// whole gives the first of the names that holds a whole number from 0, also one that is written as text.
func (a *attrs) whole(names ...string) *int32 {
	for _, n := range names {
		if v := a.text(n); v != "" {
			if i, err := index(v); err == nil {
				i := int32(i) //nolint:gosec // index gives 31 bits
				return &i
			}
		}
	}
	return nil
}

// number gives the first of the names that holds a finite number from 0.
func (a *attrs) number(names ...string) *float64 {
	for _, n := range names {
		if f, err := decimal(a.text(n)); err == nil {
			return &f
		}
	}
	return nil
}

// value gives an attribute as JSON values: texts, numbers, booleans, []any, map[string]any. Instrumentations write
// structures as JSON text; such text is parsed, and raw is it as it was.
func (a *attrs) value(name string) (v any, raw string) {
	if a.all[name] == nil {
		return nil, ""
	}
	v = plain(a.all[name])
	if s, ok := v.(string); ok {
		if len(s) > maxText {
			a.huge = true
			return nil, ""
		}
		return parsed(s), s
	}
	return v, written(v)
}

// document is value for what holds messages: text that is too much for an event is read too, where it is few values of which some
// may be images, for these are left out before the size is measured.
func (a *attrs) document(name string) (v any, raw string) {
	s, ok := "", false
	if a.all[name] != nil {
		s, ok = plain(a.all[name]).(string)
	}
	if !ok || len(s) <= maxText {
		return a.value(name)
	}
	if v = roomy(s); v == any(s) {
		a.huge = true
		return nil, ""
	}
	return v, s
}

// roomy is parsed for text of any size, as long as it is few values: parsed, each takes some hundred bytes.
func roomy(s string) any {
	if len(s) > maxText && strings.Count(s, ",")+strings.Count(s, "{")+strings.Count(s, "[") > maxValues {
		return s
	}
	return parsed(s)
}

// nested gathers flat attributes beneath a prefix, llm.input_messages.0.message.role, into maps and lists.
func (a *attrs) nested(prefix string) any {
	root := map[string]any{}
	for name, v := range a.all {
		path, ok := strings.CutPrefix(name, prefix+".")
		if !ok || strings.Count(path, ".") > 16 {
			continue
		}
		at := root
		steps := strings.Split(path, ".")
		for _, step := range steps[:len(steps)-1] {
			next, is := at[step].(map[string]any)
			if !is { // a text with members beneath it: the members hold
				next = map[string]any{}
				at[step] = next
			}
			at = next
		}
		last := steps[len(steps)-1]
		if _, is := at[last].(map[string]any); !is {
			at[last] = plain(v)
		}
	}
	if len(root) == 0 {
		return nil
	}
	return listed(root)
}

// listed turns maps whose names are all numbers into lists in their order, gaps left out.
func listed(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	var at []int
	for k := range m {
		m[k] = listed(m[k])
		if i, err := strconv.Atoi(k); err == nil && i >= 0 && strconv.Itoa(i) == k {
			at = append(at, i)
		}
	}
	if len(at) == 0 || len(at) < len(m) {
		return m
	}
	sort.Ints(at)
	list := make([]any, len(at))
	for i, k := range at {
		list[i] = m[strconv.Itoa(k)]
	}
	return list
}

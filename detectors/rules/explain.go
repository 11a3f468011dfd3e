package rules

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// All gives the rules of the packs, in order.
func All(packs []*Pack) []*Rule {
	var all []*Rule
	for _, p := range packs {
		all = append(all, p.Rules...)
	}
	return all
}

// SetVersion is a short hash over what the packs and their common files say, the same for any order of the packs. It
// changes whenever a rule, a list or a version does.
func SetVersion(packs []*Pack) string {
	packs = slices.Clone(packs)
	slices.SortFunc(packs, func(a, b *Pack) int { return cmp.Compare(a.ID, b.ID) })
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, p := range packs {
		// A pack is plain data and a hash takes every write, so this cannot fail.
		_ = enc.Encode(p)
		for _, r := range p.Rules {
			for _, pattern := range r.Expanded { // what lists of the lexicon and of the common file made of it
				_, _ = io.WriteString(h, pattern+"\n")
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:6])
}

// Explain tells a person what a rule is for, when it fires and when it does not, and on demand what the lists hold that it names;
// ok is false when no pack has a rule of that id.
func Explain(packs []*Pack, id string, lists bool) (text string, ok bool) {
	for _, r := range All(packs) {
		if r.ID == id {
			text = explain(r)
			if lists {
				text += explainLists(r)
			}
			return text, true
		}
	}
	return "", false
}

func explain(r *Rule) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  (%s, pack %s %s)\n  %s\n", r.ID, r.Kind, r.Pack.ID, r.Pack.Version, r.Description)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", name, value)
		}
	}
	line("severity", string(r.Severity))
	if r.Severity != "" {
		line("weight", r.Severity.Weight().String())
	}
	line("class", r.Class)
	line("category", r.Category)
	line("covers", r.Example)
	line("entity", r.Entity)
	line("check", r.Check)
	line("confidence", fmt.Sprint(r.Confidence))
	line("mitigation", r.Mitigation)
	line("instead", r.Replace)
	line("rationale", r.Rationale)
	line("source", r.Source)
	if r.Refutable() {
		line("refutable", "no hit where the text around it says that it is wrong or an example of what is not allowed (docs/detection.md, Refuted statements)")
	}
	for _, part := range []struct {
		title string
		items []string
	}{
		{"Patterns (without regard to case):", r.Patterns},
		{"Not when its sentence holds:", append(slices.Clone(r.Pack.Unless), r.Unless...)},
		{"Not when its clause holds:", r.Pack.UnlessClause},
		{"Not where it is the end of:", r.UnlessHere},
		{"Only near one of:", r.Near},
		{"Not where the nearest is one of:", r.NotNear},
		{"Fires on:", r.Match},
		{"Stays silent on:", r.NoMatch},
	} {
		if len(part.items) == 0 {
			continue
		}
		b.WriteString("  " + part.title + "\n")
		for _, item := range part.items {
			b.WriteString("    " + item + "\n")
		}
	}
	return b.String()
}

// explainLists writes the lists that the rule's patterns and guards name, and those that these name.
func explainLists(r *Rule) string {
	all, _ := allLists(r.Pack, "") // it loaded, so there are no faults
	named := map[string]bool{}
	var name func(patterns []string)
	name = func(patterns []string) {
		for _, p := range patterns {
			for _, m := range listName.FindAllStringSubmatch(p, -1) {
				if list := m[2]; m[1] == "" && !named[list] && all[list] != nil {
					named[list] = true
					name(slices.DeleteFunc(slices.Clone(all[list]), func(item string) bool { return !strings.HasPrefix(item, "re:") }))
				}
			}
		}
	}
	name(slices.Concat(r.Patterns, r.Pack.Unless, r.Pack.UnlessClause, r.Unless, r.UnlessHere))
	if len(named) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  Lists:\n")
	for _, list := range slices.Sorted(maps.Keys(named)) {
		fmt.Fprintf(&b, "    {%s}: %s\n", list, strings.Join(all[list], ", "))
	}
	return b.String()
}

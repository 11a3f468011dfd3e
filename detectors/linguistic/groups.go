package linguistic

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the lists
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/rules"
)

//go:embed groups.yaml
var groupsFile string

// group is one group within a dimension, such as women in sex.
type group struct {
	dimension int
	number    int  // within the dimension
	many      bool // named as a group, not one person of it
}

// groups are rules of the common scanner that say which groups a text mentions, and whether it reads as a job advert.
type groups struct {
	rules []*rules.Rule
	packs []*rules.Pack
	of    []group // by rule; cues stand behind
	count []int   // groups by dimension
}

func loadGroups(file string) (*groups, error) {
	var y struct {
		Version    string
		Dimensions map[string]map[string]struct{ Many, One []string }
		Cues       []string
	}
	if err := yaml.Unmarshal([]byte(file), &y); err != nil {
		return nil, err
	}
	g := &groups{}
	mentions := &rules.Pack{ID: "representation.groups.en", Title: "Groups that are mentioned", Version: y.Version, Language: "en", Wording: "representation"}
	for dim, name := range slices.Sorted(maps.Keys(y.Dimensions)) {
		groups := y.Dimensions[name]
		for number, label := range slices.Sorted(maps.Keys(groups)) {
			for _, words := range []struct {
				list []string
				many bool
			}{{groups[label].Many, true}, {groups[label].One, false}} {
				if len(words.list) == 0 {
					continue
				}
				mentions.Rules = append(mentions.Rules, &rules.Rule{ID: fmt.Sprintf("representation.%d.%d.%t", dim, number, words.many), Severity: audit.Low, Patterns: []string{anyWord(words.list)}})
				g.of = append(g.of, group{dim, number, words.many})
			}
		}
		g.count = append(g.count, len(groups))
	}
	cues := &rules.Pack{ID: "job_advert_wording.cues.en", Title: "Words of job adverts", Version: y.Version, Language: "en", Wording: "job_advert_wording"}
	for i, cue := range y.Cues {
		cues.Rules = append(cues.Rules, &rules.Rule{ID: fmt.Sprintf("job_advert_wording.cue.%d", i), Severity: audit.Low, Patterns: []string{cue}})
	}
	for _, p := range []*rules.Pack{mentions, cues} {
		if err := rules.Fill(p, p.ID); err != nil {
			return nil, err
		}
		g.packs, g.rules = append(g.packs, p), append(g.rules, p.Rules...)
	}
	return g, nil
}

func anyWord(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = regexp.QuoteMeta(w)
	}
	return `\b(?:` + strings.Join(quoted, "|") + `)\b`
}

// mention is one place where a group is mentioned, in bytes of the original text.
type mention struct {
	group
	start, end int
}

// seen is what hits say beside findings.
type seen struct {
	mentions []mention // in order of the text
	compared []bool    // by dimension: two groups are mentioned; nil when there is none such
	cues     int       // different cues of a job advert
}

func (s *seen) compares() bool { return s.compared != nil }

// seen reads the hits of rules behind those of the packs. Mentions are collected only when two groups of one dimension
// are there, which most texts have not.
func (g *groups) seen(hits []detectors.Hit, first int) (s seen) {
	from, _ := slices.BinarySearchFunc(hits, first, func(h detectors.Hit, rule int) int { return cmp.Compare(h.Rule, rule) })
	to, last := from, -1
	for ; to < len(hits) && hits[to].Rule < first+len(g.of); to++ {
		of := g.of[hits[to].Rule-first]
		if last >= 0 && g.of[last].dimension == of.dimension && g.of[last].number != of.number {
			if s.compared == nil {
				s.compared = make([]bool, len(g.count))
			}
			s.compared[of.dimension] = true
		}
		last = hits[to].Rule - first
	}
	for i := to; i < len(hits); i++ {
		if i == to || hits[i].Rule != hits[i-1].Rule {
			s.cues++
		}
	}
	if s.compared == nil {
		return s
	}
	for _, h := range hits[from:to] {
		if of := g.of[h.Rule-first]; s.compared[of.dimension] {
			s.mentions = append(s.mentions, mention{of, h.Start, h.End})
		}
	}
	slices.SortFunc(s.mentions, func(a, b mention) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	s.mentions = longest(s.mentions)
	return s
}

// longest drops mentions that lie inside another of the same dimension: "men" in "trans men".
func longest(ms []mention) []mention {
	kept := ms[:0]
	for _, m := range ms {
		if !slices.ContainsFunc(kept, func(k mention) bool { return k.dimension == m.dimension && m.end <= k.end }) {
			kept = append(kept, m)
		}
	}
	return kept
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// Command words writes detectors/normal/words.txt: the words that rules in English and German can match, from the
// patterns, lists and sentences of the packs that ship and the labelled sentences of the classifier, and those of
// more.txt. Words of further languages would be seen in English where letters stand apart ("w o m e n a r e":
// "wo", "menare"). Run it by go generate after packs have changed.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/rules"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

// texts are those that rules were made beside, a file a ground or category of safety. What other writers wrote for learned detectors is
// no vocabulary of rules.
func texts() (files []string) {
	names := []string{"grounds.de", "safety.de", "violence.en", "self_harm.en", "illegal_instructions.en", "hallucination_indicator.en"}
	for _, g := range audit.Grounds {
		names = append(names, string(g)+".en")
	}
	for _, name := range names {
		files = append(files, filepath.Join("../classifier/data", name+".jsonl"))
	}
	return files
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("want the file to write")
	}
	c := collector{words: map[string]int{}, done: map[string]bool{}}
	folders, err := filepath.Glob("../*/packs")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		packs, err := rules.Load(os.DirFS(folder))
		if err != nil {
			return err
		}
		for _, p := range packs {
			if p.Language == "en" || p.Language == "de" {
				c.pack(p)
			}
		}
	}
	for _, file := range append(texts(), "more.txt") {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		c.file(file, raw)
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	var all []string
	for word := range c.words {
		if isWord(word) {
			all = append(all, word)
		}
	}
	slices.Sort(all)
	for _, word := range all {
		fmt.Fprintln(w, word)
	}
	_ = w.Flush() // to memory
	return os.WriteFile(args[0], b.Bytes(), 0o644)
}

// collector gathers words, in lower case.
type collector struct {
	words map[string]int
	done  map[string]bool // patterns
}

func (c *collector) pack(p *rules.Pack) {
	for _, r := range p.Rules {
		for _, s := range append(slices.Clone(r.Match), r.NoMatch...) {
			c.text(s)
		}
		for _, pattern := range r.Patterns {
			c.pattern(listName.ReplaceAllString(pattern, " "))
		}
	}
	for _, items := range p.Lists {
		for _, item := range items {
			if pattern, ok := strings.CutPrefix(item, "re:"); ok {
				c.pattern(listName.ReplaceAllString(pattern, " "))
			} else {
				c.text(item)
			}
		}
	}
}

var (
	listName = regexp.MustCompile(`\{[a-z_][a-z0-9_]*\}`)
	// A word: what follows or precedes an apostrophe is none, for it may be a piece ("re" of you're).
	word = regexp.MustCompile(`(?:['’]?)\p{L}+(?:['’]\p{L}+)*`)
	text = regexp.MustCompile(`"text": ?"((?:[^"\\]|\\.)*)"`)
)

func (c *collector) text(s string) {
	for _, w := range word.FindAllString(s, -1) {
		if !strings.ContainsAny(w, "'’") {
			c.words[strings.ToLower(w)]++
		}
	}
}

func (c *collector) file(name string, raw []byte) {
	if filepath.Ext(name) != ".jsonl" {
		c.text(string(raw))
		return
	}
	for _, m := range text.FindAllSubmatch(raw, -1) {
		c.text(strings.ReplaceAll(string(m[1]), `\n`, " "))
	}
}

// pattern adds every word that a pattern spells out.
func (c *collector) pattern(p string) {
	re, err := syntax.Parse(p, syntax.Perl)
	if err != nil || c.done[p] {
		return
	}
	c.done[p] = true
	for _, w := range c.spell(re, []string{""}) {
		c.end(w)
	}
}

// most bounds how many beginnings of words are followed at once.
const most = 400

// lost stands for a word with a part that has no one spelling.
const lost = "\x00"

// spell follows words through an expression: from those begun before it to those begun when it ends.
func (c *collector) spell(re *syntax.Regexp, begun []string) []string {
	switch re.Op {
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			begun = c.add(begun, r)
		}
	case syntax.OpCharClass:
		if len(re.Rune) == 2 && re.Rune[0] == re.Rune[1] || len(re.Rune) == 4 && re.Rune[0] == re.Rune[1] && re.Rune[2] == re.Rune[3] {
			var out []string
			for i := 0; i < len(re.Rune); i += 2 {
				out = append(out, c.add(begun, re.Rune[i])...)
			}
			return limit(out)
		}
		return c.cutOff(re, begun)
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			begun = c.spell(sub, begun)
		}
	case syntax.OpAlternate:
		var out []string
		for _, sub := range re.Sub {
			out = append(out, c.spell(sub, begun)...)
		}
		return limit(out)
	case syntax.OpCapture:
		return c.spell(re.Sub[0], begun)
	case syntax.OpQuest:
		return limit(append(slices.Clone(begun), c.spell(re.Sub[0], begun)...))
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat:
		if sub := re.Sub[0].Op; sub == syntax.OpCharClass || sub == syntax.OpAnyChar || sub == syntax.OpAnyCharNotNL { // a gap
			for _, w := range begun {
				c.end(w)
			}
			return []string{"", lost}
		}
		out := c.spell(re.Sub[0], begun)
		if re.Op == syntax.OpStar || re.Op == syntax.OpRepeat && re.Min == 0 {
			out = append(out, begun...)
		}
		return limit(append(out, lost))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return c.cutOff(re, begun)
	case syntax.OpWordBoundary:
		for _, w := range begun {
			c.end(w)
		}
		return []string{""}
	}
	return begun
}

// cutOff handles a class: one that holds no letter ends words, any other loses them.
func (c *collector) cutOff(re *syntax.Regexp, begun []string) []string {
	for i := 0; i+1 < len(re.Rune); i += 2 {
		if re.Rune[i] <= 'z' && re.Rune[i+1] >= 'a' {
			return []string{lost}
		}
	}
	for _, w := range begun {
		c.end(w)
	}
	return []string{""}
}

func (c *collector) add(begun []string, r rune) []string {
	out := make([]string, 0, len(begun))
	for _, w := range begun {
		switch {
		case r == ' ' || r == '-' || r == ',':
			c.end(w)
			out = append(out, "")
		case w != lost:
			out = append(out, w+string(r))
		default:
			out = append(out, lost)
		}
	}
	return limit(out)
}

func (c *collector) end(w string) {
	if w != lost {
		c.text(w)
	}
}

func limit(words []string) []string {
	slices.Sort(words)
	words = slices.Compact(words)
	if len(words) > most {
		return []string{lost}
	}
	return words
}

// isWord refuses letters alone, numerals, what has no vowel, stretches of the alphabet, and pieces of
// contracted words.
func isWord(w string) bool {
	n := len([]rune(w))
	return n > 1 && n < 25 && strings.ContainsAny(w, "aeiouyäöüéáè") && strings.Trim(w, "ivx") != "" && !strings.Contains("abcdefghijklmnopqrstuvwxyz", w) &&
		!slices.Contains([]string{"re", "ve", "ll", "st", "th", "nd", "rd", "om", "io", "oo", "aa", "ee"}, w)
}

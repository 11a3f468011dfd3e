package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/normal"
	"github.com/evenhand/evenhand/detectors/rules"
)

type rulesPruneCmd struct {
	packsFlags
	Files []string `help:"Labelled JSONL files: {\"text\", \"label\": {\"bias\": 0|1}, \"characteristic\": [...], \"split\"} a line." required:"" type:"existingfile" placeholder:"FILE"`
	Split string   `help:"Only rows of this split: train or dev." placeholder:"SPLIT"`
	All   bool     `help:"List the rules that stay, too."`
}

func (rulesPruneCmd) Help() string {
	return `A rule of the bias packs stays only if removing it loses a hit in labelled texts, or if it is for slurs, or if no other
rule covers its example kind. A text whose "rule" names the rule that it was written for is no evidence for that rule. Prints what was found in each file and on each ground, and the rules that may go.
Weighed are the packs of --dir, or those of rules.dir in the settings, or the shipped ones.

Example:
  evenhand rules prune --files train.jsonl --files own.jsonl`
}

// tally counts texts of one file or ground.
type tally struct{ biased, found, clean, alarms int }

func (t *tally) add(biased, fired bool) {
	switch {
	case biased && fired:
		t.biased++
		t.found++
	case biased:
		t.biased++
	case fired:
		t.clean++
		t.alarms++
	default:
		t.clean++
	}
}

// Run weighs the rules.
func (cmd *rulesPruneCmd) Run(c *cli, std *stdio) error {
	packs, dir, err := cmd.chosen(c)
	if err != nil {
		return err
	}
	if dir == "" {
		packs = slices.DeleteFunc(packs, func(p *rules.Pack) bool { return p.Ground == "" })
	}
	scales, err := rules.NewScales(packs)
	if err != nil {
		return err
	}
	files, grounds := map[string]*tally{}, map[string]*tally{}
	for _, name := range cmd.Files {
		if err := cmd.weighFile(name, scales, files, grounds); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		return &settingsError{fmt.Errorf("--split: no labelled row is of split %q", cmd.Split)}
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	printTallies(t, "FILE", files)
	printTallies(t, "GROUND", grounds)
	gone := 0
	fmt.Fprintln(t, "RULE\tHITS\tSOLE\tFALSE\tSTAYS FOR")
	weights := scales.Weigh()
	for _, w := range weights {
		if w.Keep == "" {
			gone++
		} else if !cmd.All {
			continue
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\n", w.Rule.ID, w.Hits, w.Sole, w.False, w.Keep)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(std.out, "%s, %d may go\n", count(len(weights), "rule"), gone)
	return nil
}

// weighFile reads the rows that say whether they are biased.
func (cmd *rulesPruneCmd) weighFile(name string, scales *rules.Scales, files, grounds map[string]*tally) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	at := func(m map[string]*tally, key string) *tally {
		if m[key] == nil {
			m[key] = &tally{}
		}
		return m[key]
	}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	labelled := 0
	for n := 1; lines.Scan(); n++ {
		var row struct {
			Text           string         `json:"text"`
			Label          map[string]any `json:"label"`
			Characteristic []string       `json:"characteristic"`
			Split          string         `json:"split"`
			Rule           string         `json:"rule"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			return audit.E("rules prune", audit.KindInvalid, fmt.Errorf("%s line %d is not a labelled text", name, n))
		}
		label, known := row.Label["bias"].(float64)
		if known {
			labelled++
		}
		if !known || cmd.Split != "" && row.Split != cmd.Split {
			continue
		}
		text := normal.Of(row.Text)
		fired := scales.Add(text.String(), label == 1, row.Rule)
		at(files, strings.TrimSuffix(filepath.Base(name), ".jsonl")).add(label == 1, len(fired) > 0)
		for _, g := range row.Characteristic {
			at(grounds, g).add(label == 1, len(fired) > 0)
		}
	}
	if lines.Err() == nil && labelled == 0 {
		return &settingsError{fmt.Errorf("--files: no row of %s says label.bias, 0 or 1", name)}
	}
	return lines.Err()
}

func printTallies(w io.Writer, title string, tallies map[string]*tally) {
	fmt.Fprintf(w, "%s\tBIASED\tFOUND\tRECALL\tCLEAN\tALARMS\tRATE\tUPPER 95 %%\n", title)
	for _, name := range slices.Sorted(maps.Keys(tallies)) {
		t := tallies[name]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%d\t%d\t%s\t%s\n", name, t.biased, t.found, percent(t.found, t.biased),
			t.clean, t.alarms, percent(t.alarms, t.clean), percentOf(wilsonUpper(t.alarms, t.clean)))
	}
	fmt.Fprintln(w)
}

func percent(k, n int) string {
	if n == 0 {
		return "–"
	}
	return percentOf(float64(k) / float64(n))
}

func percentOf(x float64) string { return fmt.Sprintf("%.2f %%", 100*x) }

// wilsonUpper is the upper end of the Wilson interval (95 %) of k out of n.
func wilsonUpper(k, n int) float64 {
	if n == 0 {
		return 0
	}
	const z = 1.959964
	p, m := float64(k)/float64(n), float64(n)
	return (p + z*z/(2*m) + z*math.Sqrt(p*(1-p)/m+z*z/(4*m*m))) / (1 + z*z/m)
}

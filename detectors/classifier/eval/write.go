package eval

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors/classifier/metric"
)

//go:embed report.html
var page string

// Text writes the report as tables for a terminal.
func (r *Report) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s by %s: %d texts, %d with it\n", r.Task, r.By, r.Overall.TP+r.Overall.FP+r.Overall.TN+r.Overall.FN, r.Overall.TP+r.Overall.FN)
	if r.Unanswered > 0 {
		fmt.Fprintf(w, "%d more had no answer and stand in no figure\n", r.Unanswered)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	const head = "\twith\twithout\trecall\tFPR\t≤\tprecision\tF1\tAUROC\tAP\tECE\trecall at FPR .03\tground right\n"
	row := func(name string, f Figures) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, f.Positives(), f.Negatives(), f.Recall, f.FPR, f.FPRHigh, f.Precision, f.F1, f.AUROC, f.AP, f.ECE, f.RecallAt3, f.Ground)
	}
	fmt.Fprint(t, head)
	row("all", r.Overall)
	if r.Ordinary.FP+r.Ordinary.TN > 0 {
		row("ordinary text", r.Ordinary)
	}
	for _, part := range []struct {
		name string
		of   []Figures
	}{{"ground", r.Grounds}, {"function", r.Functions}, {"source", r.Sources}} {
		for i, f := range part.of {
			if i == 0 {
				fmt.Fprint(t, part.name+strings.Repeat("\t", 12)+"\n")
			}
			row("  "+f.Name, f)
		}
	}
	if err := t.Flush(); err != nil {
		return audit.E("eval: write", audit.KindInternal, err)
	}
	fmt.Fprintf(w, "macro recall over grounds %s; group exchanged %d times: mean change %s, 95 %% below %s, answers that change %s\n", r.MacroRecall, r.Swap.N, r.Swap.Mean, r.Swap.P95, r.Swap.Flips)
	return nil
}

// String shows three decimals, – for what is unknown.
func (n Number) String() string {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(n))
}

// HTML writes reports as one page without anything from outside.
func HTML(w io.Writer, title string, reports []*Report) error {
	t, err := template.New("report").Funcs(template.FuncMap{"roc": roc, "pr": pr, "reliability": reliability, "bars": bars}).Parse(page)
	if err == nil {
		err = t.Execute(w, map[string]any{"Title": title, "Reports": reports})
	}
	if err != nil {
		return audit.E("eval: write", audit.KindInternal, err)
	}
	return nil
}

const side = 220 // pixels of a plot

type point struct{ x, y float64 }

// plot draws lines through points in the unit square.
func plot(name, x, y string, line []point, dots bool) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="-34 -10 %d %d" role="img" aria-label="%s"><title>%s</title><rect width="%d" height="%d" class="frame"/>`, side+50, side+46, name, name, side, side)
	if dots {
		fmt.Fprintf(&b, `<line x1="0" y1="%d" x2="%d" y2="0" class="even"/>`, side, side)
	}
	b.WriteString(`<polyline class="curve" points="`)
	for _, p := range thin(line) {
		fmt.Fprintf(&b, "%.1f,%.1f ", p.x*side, (1-p.y)*side)
	}
	b.WriteString(`"/>`)
	if dots && len(line) <= 10 {
		for _, p := range line {
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3"/>`, p.x*side, (1-p.y)*side)
		}
	}
	for _, v := range []float64{0, 0.5, 1} {
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle">%g</text><text x="-6" y="%.0f" text-anchor="end">%g</text>`, v*side, side+14, v, (1-v)*side+4, v)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text><text x="-24" y="%d" transform="rotate(-90 -24 %d)" text-anchor="middle">%s</text></svg>`, side/2, side+30, x, side/2, side/2, y)
	return template.HTML(b.String()) // numbers and constants of ours
}

// thin keeps at most a few hundred points.
func thin(line []point) (out []point) {
	step := max(1, len(line)/300)
	for i, p := range line {
		if i%step == 0 || i == len(line)-1 {
			out = append(out, p)
		}
	}
	return out
}

func roc(r *Report) template.HTML {
	line := []point{{0, 0}}
	for _, s := range metric.Curve(r.scored) {
		line = append(line, point{s.FPR(), s.Recall()})
	}
	return plot("recall by false positives", "false positive rate", "recall", line, true)
}

func pr(r *Report) template.HTML {
	var line []point
	for _, s := range metric.Curve(r.scored) {
		line = append(line, point{s.Recall(), s.Precision()})
	}
	return plot("precision by recall", "recall", "precision", line, false)
}

func reliability(r *Report) template.HTML {
	var line []point
	for _, b := range r.Reliability {
		line = append(line, point{b.Mean, b.True})
	}
	return plot("share of true texts by score", "score", "share", line, true)
}

// bars shows recall and false positives of groups side by side.
func bars(fs []Figures) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 620 %d" role="img" aria-label="recall and false positives">`, 22*len(fs)+6)
	for i, f := range fs {
		y := 22 * i
		fmt.Fprintf(&b, `<text x="188" y="%d" text-anchor="end">%s</text>`, y+14, template.HTMLEscapeString(f.Name))
		for k, v := range []Number{f.Recall, f.FPR} {
			if v == v {
				fmt.Fprintf(&b, `<rect x="196" y="%d" width="%.1f" height="8" class="%s"/><text x="%.1f" y="%d" class="small">%s</text>`,
					y+3+9*k, 360*float64(v), []string{"recall", "fpr"}[k], 200+360*float64(v), y+11+9*k, v)
			}
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // names are escaped
}

// Positives is the number of texts that have it, Negatives of those that do not.
func (f Figures) Positives() int { return f.TP + f.FN }

// Negatives is the number of harmless texts.
func (f Figures) Negatives() int { return f.FP + f.TN }

// Totals are the figures of all texts, and of ordinary ones where there are any.
func (r *Report) Totals() []Figures {
	all := r.Overall
	all.Name = "all"
	out := []Figures{all}
	if r.Ordinary.Negatives() > 0 {
		o := r.Ordinary
		o.Name = "ordinary text"
		out = append(out, o)
	}
	return out
}

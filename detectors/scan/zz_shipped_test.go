package scan_test

import (
	"os"
	"strings"
	"testing"
	"time"
	"regexp/syntax"

	"github.com/evenhand/evenhand/detectors/bias"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/rules"
	"github.com/evenhand/evenhand/detectors/safety"
	"github.com/evenhand/evenhand/detectors/scan"
)

func TestZZ(t *testing.T) {
	t0 := time.Now()
	bp, err := rules.Load(bias.Packs())
	if err != nil { t.Fatal(err) }
	t.Log("load", time.Since(t0))
	sp, _ := rules.Load(safety.Packs())
	gp, _ := rules.Load(gate.Packs())
	var ps []string
	n := 0
	for _, r := range rules.All(append(append(bp, sp...), gp...)) {
		for _, e := range r.Expanded { ps = append(ps, e); n += len(e) }
	}
	t.Log(len(ps), n)
	os.WriteFile("/tmp/scanwork/patterns.txt", []byte(strings.Join(ps, "\n")), 0o644)
	t0 = time.Now()
	for _, p := range ps { syntax.Parse("(?i)"+p, syntax.Perl) }
	t.Log("parse", time.Since(t0))
	t0 = time.Now()
	scan.Compile(ps, scan.Options{})
	t.Log("compile", time.Since(t0))
}

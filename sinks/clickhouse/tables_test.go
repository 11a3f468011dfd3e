package clickhouse

import (
	"fmt"
	"slices"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/evenhand/evenhand/audit"
)

func TestOutputKinds(t *testing.T) {
	v := &audit.Verdict{Findings: []audit.Finding{
		{Kind: "safety.violence", Severity: audit.Low, Side: audit.Output}, {Kind: "charter.sex", Severity: audit.Medium, Side: audit.Output},
		{Kind: "charter.sex", Severity: audit.High, Side: audit.Output}, {Kind: "charter.sex", Severity: audit.Low, Side: audit.Output},
		{Kind: "charter.age", Severity: audit.Critical, Side: audit.Input}, {Kind: "gate.pay", Side: audit.Output},
	}}
	kinds, severities := outputKinds(v)
	if !slices.Equal(kinds, []string{"charter.sex", "gate.pay", "safety.violence"}) || !slices.Equal(severities, []uint8{3, 0, 1}) {
		t.Error(kinds, severities)
	}
}

// nowhere is a column that takes everything.
type nowhere struct{ driver.BatchColumn }

func (nowhere) Append(any) error { return nil }

// BenchmarkRollupColumns: what an event costs by the columns that are there for the rollups.
func BenchmarkRollupColumns(b *testing.B) {
	for _, n := range []int{0, 3} {
		rs := make([]record, blockRows)
		for i := range rs {
			v := &audit.Verdict{RuleSet: "r"}
			for j := range n {
				v.Findings = append(v.Findings, audit.Finding{Kind: fmt.Sprint("charter.", j), Severity: audit.High, Side: audit.Output})
			}
			rs[i] = record{Interaction: &audit.Interaction{}, Verdict: v}
		}
		var columns []column
		for _, c := range currentTable(rs).columns {
			switch c.name {
			case "rule_set", "severities", "cost_micro_usd", "review":
				columns = append(columns, c)
			}
		}
		b.Run(fmt.Sprintf("findings=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				for _, c := range columns {
					if err := c.appendTo(nowhere{}, 0, blockRows); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blockRows, "ns/event")
		})
	}
}

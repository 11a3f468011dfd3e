package boards

import (
	"strconv"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/evenhand/evenhand/audit"
)

// property is one setting of an override.
type property = dashboard.DynamicConfigValue

// step begins a colour of a stat panel.
type step = dashboard.Threshold

// Units of Grafana.
const (
	share   = "percentunit"
	count   = "short"
	seconds = "s"
	usd     = "currencyUSD"
	size    = "bytes"
)

// number shows one figure of one row, a quarter of a board wide: of a share its rate, without the interval.
func number(title, about, sql, unit string, steps ...step) *stat.PanelBuilder {
	fields := ""
	if unit == share {
		fields = "/^(rate|coverage)$/"
	}
	if len(steps) == 0 {
		steps = []step{{Color: "text"}}
	}
	p := stat.NewPanelBuilder().Title(title).Description(about).Datasource(source()).WithTarget(ask(sql, rowsOf)).Height(4).Span(6).Unit(unit).NoValue("none").
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}).Fields(fields).Values(false)).
		GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeValue).TextMode(common.BigValueTextModeAuto).JustifyMode(common.BigValueJustifyModeAuto).
		Orientation(common.VizOrientationAuto).Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps))
	if unit == share {
		p.Decimals(1).Min(0).Max(1)
	}
	return p
}

// lines shows columns or a text column's values over time, half a board wide.
func lines(title, about, sql, unit string) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(about).Datasource(source()).WithTarget(ask(sql, timeSeries)).Height(8).Span(12).Unit(unit).
		Legend(common.NewVizLegendOptionsBuilder().DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).ShowLegend(true)).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		LineWidth(1).ShowPoints(common.VisibilityModeAuto)
	if unit == share {
		p.Min(0).Decimals(1)
	}
	return p
}

// banded shows the column rate between lower and upper. Bands know the names of series only, so such a
// panel shows one rate; many are shown by repeating it.
func banded(title, about, sql string) *timeseries.PanelBuilder {
	quiet := []property{{Id: "custom.lineWidth", Value: 0}, {Id: "custom.hideFrom", Value: map[string]any{"legend": true, "tooltip": false, "viz": false}}}
	upper := append([]property{{Id: "custom.fillBelowTo", Value: "lower"}, {Id: "custom.fillOpacity", Value: 15}, {Id: "color", Value: fixed("blue")}}, quiet...)
	return lines(title, about, sql, share).
		OverrideByName("rate", []property{{Id: "color", Value: fixed("blue")}, {Id: "custom.lineWidth", Value: 2}}).
		OverrideByName("upper", upper).
		OverrideByName("lower", append([]property{{Id: "color", Value: fixed("blue")}}, quiet...))
}

func fixed(colour string) map[string]any {
	return map[string]any{"mode": "fixed", "fixedColor": colour}
}

// stacked shows counts as bars on each other.
func stacked(title, about, sql, unit string) *timeseries.PanelBuilder {
	return lines(title, about, sql, unit).DrawStyle(common.GraphDrawStyleBars).FillOpacity(60).
		Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

// cells shows rows and columns, half a board wide.
func cells(title, about, sql string) *table.PanelBuilder {
	return table.NewPanelBuilder().Title(title).Description(about).Datasource(source()).WithTarget(ask(sql, rowsOf)).Height(9).Span(12).
		ShowHeader(true).CellHeight(common.TableCellHeightSm).Align(common.FieldTextAlignmentAuto).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{}))
}

// rates is cells with the columns of a Wilson interval.
func rates(title, about, sql string) *table.PanelBuilder {
	return cells(title, about, sql).OverrideByRegexp("/^(rate|lower|upper|baseline)$/", []property{{Id: "unit", Value: share}, {Id: "decimals", Value: 1}})
}

// matrix turns the columns row, column and rate of a statement into a coloured grid.
func matrix(title, about, sql, row, column string) *table.PanelBuilder {
	return cells(title, about, sql).
		WithTransformation(dashboard.DataTransformerConfig{Id: "groupingToMatrix", Options: map[string]any{"columnField": column, "rowField": row, "valueField": "rate", "emptyValue": "null"}}).
		OverrideByFieldType("number", []property{
			{Id: "unit", Value: share}, {Id: "decimals", Value: 1}, {Id: "min", Value: 0}, {Id: "max", Value: 1},
			{Id: "color", Value: map[string]any{"mode": "continuous-YlRd"}},
			{Id: "custom.cellOptions", Value: map[string]any{"type": "color-background", "mode": "basic"}},
		})
}

// linked makes a column's cells lead to url.
func linked(title, url string) []property {
	return []property{{Id: "links", Value: []any{map[string]any{"title": title, "url": url, "targetBlank": true}}}}
}

// severities shows levels of severity by name; columns go on sorting by level.
func severities() []property {
	names := map[string]any{"0": map[string]any{"text": "none", "index": 0}}
	for i, s := range audit.Severities {
		names[strconv.Itoa(i+1)] = map[string]any{"text": string(s), "index": i + 1}
	}
	return []property{{Id: "mappings", Value: []any{map[string]any{"type": "value", "options": names}}}}
}

func hidden() []property { return []property{{Id: "custom.hidden", Value: true}} }

func unit(u string) []property { return []property{{Id: "unit", Value: u}} }

func coverage(sql statements) *stat.PanelBuilder {
	return number("Coverage", "Analysed share of what came in with a response: what failed or waits is not clean; what is in a language that the detectors have not learnt counts as analysed", sql["coverage"], share,
		step{Color: "red"}, step{Color: "orange", Value: new(0.9)}, step{Color: "green", Value: new(0.99)})
}

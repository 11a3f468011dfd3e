// Package boards makes the Grafana dashboards with the foundation SDK. The SQL of each panel, variable
// and annotation is a file under sql/. Their JSON is committed under ../json, which is what the program
// and Grafana's file provisioning read: go test ./dashboards/boards -update writes it anew.
//
// Trends read the rollups, of hours up to two weeks and of days beyond, so that a year costs what a
// week does; they lag by the few minutes between two runs of the rollup job. A range's end is outside,
// and an hour or day that it begins or ends in is counted whole. The newest flagged
// interactions and the rules that fired are read from the facts. No statement reads a table of texts.
// One board asks Prometheus for what only the processes know.
//
// The variables are filters and no boundary: a viewer can edit them. What keeps tenants apart is a data
// source each whose user sees that tenant's rows only (docs/grafana.md).
package boards

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// Grafana 13 loads the classic schema and turns it into its newer one; 11 and 12 know the classic only.
type (
	classic = dashboard.Dashboard        //nolint:staticcheck // see above
	builder = dashboard.DashboardBuilder //nolint:staticcheck // see above
)

var newBoard = dashboard.NewDashboardBuilder //nolint:staticcheck // see above

// Board is one dashboard: its UID, which is also the name of its file, and what it shows.
type Board struct {
	UID       string
	Dashboard classic
}

// All makes every dashboard.
func All() ([]Board, error) {
	sql, err := load()
	if err != nil {
		return nil, err
	}
	var out []Board
	for _, b := range []struct {
		uid  string
		make func(statements) *builder
	}{
		{"evenhand-bias-rates", biasRates},
		{"evenhand-safety", safety},
		{"evenhand-judge", judge},
		{"evenhand-pipeline", pipeline},
		{"evenhand-remediation", remediation},
		{"evenhand-doors", func(statements) *builder { return doors() }},
	} {
		d, err := b.make(sql).Uid(b.uid).Build()
		if err != nil {
			return nil, fmt.Errorf("dashboards: %s: %w", b.uid, err)
		}
		number := uint32(0)
		for _, p := range d.Panels {
			number++
			id := number
			if p.Panel != nil {
				p.Panel.Id = &id
			} else {
				p.RowPanel.Id = id
			}
		}
		out = append(out, Board{b.uid, d})
	}
	return out, nil
}

// JSON is the board as it is committed.
func (b Board) JSON() ([]byte, error) {
	raw, err := json.Marshal(b.Dashboard)
	if err != nil {
		return nil, fmt.Errorf("dashboards: %s: %w", b.UID, err)
	}
	var out bytes.Buffer
	err = json.Indent(&out, raw, "", "  ")
	out.WriteByte('\n')
	return plain(out.Bytes()), err
}

// plain takes back the escapes that the SDK's encoding puts into SQL for the sake of HTML.
func plain(b []byte) []byte {
	for escaped, sign := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		b = bytes.ReplaceAll(b, []byte(escaped), []byte(sign))
	}
	return b
}

// blank is a board with the data source's variable and links to the other boards.
func blank(title, about, tag string) *builder {
	return newBoard("Evenhand: "+title).Description(about).Tags([]string{"evenhand", tag}).
		Version(1).Editable().Timezone("utc").Refresh("1m").Time("now-24h", "now").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type(Plugin)).
		Link(dashboard.NewDashboardLinkBuilder("Evenhand").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{"evenhand"}).IncludeVars(true).KeepTime(true))
}

// with adds panels in reading order.
func with(d *builder, panels ...cog.Builder[dashboard.Panel]) *builder {
	for _, p := range panels {
		d.WithPanel(p)
	}
	return d
}

// Statement is one statement of a board, with variables and macros in it.
type Statement struct {
	Kind  string // the panel's type, annotation or variable
	Title string // a panel's that begins with a dollar sign is repeated by that variable
	SQL   string
}

// Statements lists what a board asks the store.
func (b Board) Statements() (out []Statement) {
	for _, p := range b.Dashboard.Panels {
		if p.Panel == nil {
			continue
		}
		if q, ok := p.Panel.Targets[0].(query); ok { // others ask Prometheus
			out = append(out, Statement{p.Panel.Type, *p.Panel.Title, q.RawSQL})
		}
	}
	for _, a := range b.Dashboard.Annotations.List {
		out = append(out, Statement{"annotation", a.Name, a.Target.(query).RawSQL})
	}
	for _, v := range b.Dashboard.Templating.List {
		if v.Type == dashboard.VariableTypeQuery {
			sql, _ := v.Query.Map["rawSql"].(string)
			out = append(out, Statement{"variable", v.Name, sql})
		}
	}
	return out
}

package boards

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
)

// Plugin is the type of the data source, and the version of it whose query form is written.
const (
	Plugin        = "grafana-clickhouse-datasource"
	pluginVersion = "4.14.0"
)

// format is how the data source shapes an answer.
type format int

const (
	timeSeries format = 0 // one wide frame a text column's value
	rowsOf     format = 1
)

// query is the data source's query: one statement. The SDK knows no type for it.
type query struct {
	RefID         string               `json:"refId"`
	Datasource    common.DataSourceRef `json:"datasource"`
	EditorType    string               `json:"editorType"`
	RawSQL        string               `json:"rawSql"`
	Format        format               `json:"format"`
	QueryType     string               `json:"queryType"`
	PluginVersion string               `json:"pluginVersion"`
}

func ask(sql string, f format) cog.Builder[variants.Dataquery] {
	kind := "table"
	if f == timeSeries {
		kind = "timeseries"
	}
	return query{RefID: "A", Datasource: source(), EditorType: "sql", RawSQL: sql, Format: f, QueryType: kind, PluginVersion: pluginVersion}
}

// source is the data source that the viewer chose.
func source() common.DataSourceRef {
	kind, uid := Plugin, "${datasource}"
	return common.DataSourceRef{Type: &kind, Uid: &uid}
}

// Build makes the query its own builder.
func (q query) Build() (variants.Dataquery, error) { return q, q.Validate() }

// ImplementsDataqueryVariant marks the query for the SDK.
func (query) ImplementsDataqueryVariant() {}

// DataqueryType is the data source's type.
func (query) DataqueryType() string { return Plugin }

// Equals compares with another query.
func (q query) Equals(other variants.Dataquery) bool {
	o, ok := other.(query)
	if !ok {
		return false
	}
	a, aerr := json.Marshal(q)
	b, berr := json.Marshal(o)
	return aerr == nil && berr == nil && bytes.Equal(a, b)
}

// Validate refuses a query without a statement.
func (q query) Validate() error {
	if q.RawSQL == "" {
		return cog.MakeBuildErrors("rawSql", fmt.Errorf("query %s has no statement", q.RefID))
	}
	return nil
}

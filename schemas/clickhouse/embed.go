// Package clickhouse holds the schema of the store of record: numbered goose migrations, one file a
// capability, forward only.
//
// The files are templates, because a single server and a replicated cluster differ in engine names,
// ON CLUSTER and storage settings and in nothing else: {{db}} is the database, {{cluster}} the ON
// CLUSTER clause, {{replacing "v"}} the ReplacingMergeTree engine with its version column, {{settings}}
// the storage settings, after those that a table names itself ({{settings "index_granularity = 1024"}}).
// Every statement is idempotent (IF NOT EXISTS, OR REPLACE), since ClickHouse has no transaction that
// would undo half a migration.
//
// Rules of the tables: keys and versions come from the log record alone, so writing a range again
// changes nothing under FINAL; every partition expression is a function of the sorting key, else two
// versions of a row could lie in different partitions and never meet. Render fails only on bad
// options; nothing here opens a connection.
package clickhouse

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing/fstest"
	"text/template"
)

//go:embed *.sql
var files embed.FS

// Options are what differs between installations.
type Options struct {
	Database   string // name of the database; letters, digits and underscore
	Cluster    string // name for ON CLUSTER; "" leaves the clause out
	Replicated bool   // Replicated engines: needs Keeper and the macros {shard} and {replica}
	// Embedded sets the storage settings of the engine that runs as our child on one machine: every
	// insert is flushed to disk before it is acknowledged, and merged-away parts go after two minutes.
	Embedded bool
}

var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// Validate reports every fault at once.
func (o Options) Validate() error {
	var errs []error
	if !name.MatchString(o.Database) {
		errs = append(errs, fmt.Errorf("clickhouse.database: %q is not a name of letters, digits and underscores", o.Database))
	}
	if o.Cluster != "" && !name.MatchString(o.Cluster) {
		errs = append(errs, fmt.Errorf("clickhouse.cluster: %q is not a name of letters, digits and underscores", o.Cluster))
	}
	if o.Replicated && o.Embedded {
		errs = append(errs, errors.New("clickhouse.replicated: the embedded engine has no Keeper; set it to false or use an outside server"))
	}
	return errors.Join(errs...)
}

// OnCluster is the ON CLUSTER clause, "" without a cluster.
func (o Options) OnCluster() string {
	if o.Cluster == "" {
		return ""
	}
	return "ON CLUSTER " + o.Cluster
}

// Replacing is the engine clause that keeps the row with the highest version.
func (o Options) Replacing(version string) string {
	if o.Replicated {
		return "ReplicatedReplacingMergeTree('/clickhouse/tables/{shard}/{database}/{table}', '{replica}', " + version + ")"
	}
	return "ReplacingMergeTree(" + version + ")"
}

// settings is the SETTINGS clause of a table with settings of its own, "" when there are none.
func (o Options) settings(own ...string) string {
	own = slices.DeleteFunc(own, func(s string) bool { return s == "" })
	if o.Embedded {
		own = append(own, "fsync_after_insert = 1", "fsync_part_directory = 1", "old_parts_lifetime = 120")
	}
	if len(own) == 0 {
		return ""
	}
	return "SETTINGS " + strings.Join(own, ", ")
}

// embedded gives a setting that only the embedded engine is known to have, "" for others.
func (o Options) embedded(setting string) string {
	if !o.Embedded {
		return ""
	}
	return setting
}

// Render gives the migrations with the options put in, as the file system that goose reads.
func Render(o Options) (fs.FS, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	funcs := template.FuncMap{
		"db":        func() string { return o.Database },
		"cluster":   o.OnCluster,
		"replacing": o.Replacing,
		"settings":  o.settings,
		"embedded":  o.embedded,
	}
	t, err := template.New("").Funcs(funcs).ParseFS(files, "*.sql")
	if err != nil {
		return nil, fmt.Errorf("schemas/clickhouse: %w", err)
	}
	out := fstest.MapFS{}
	for _, f := range t.Templates() {
		if path.Ext(f.Name()) != ".sql" {
			continue
		}
		var b bytes.Buffer
		if err := f.Execute(&b, nil); err != nil {
			return nil, fmt.Errorf("schemas/clickhouse: %s: %w", f.Name(), err)
		}
		out[f.Name()] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(b.String(), "\n;", ";")), Mode: 0o444}
	}
	return out, nil
}

// Package dashboards brings the Grafana dashboards, the data source and the alert rules to a Grafana:
// as files for its provisioning (Write), or over its HTTP API (Push). They are embedded as they are
// committed; package boards makes the dashboards.
//
// Push uses the client of Grafana's own, grafana-api-golang-client, and of it only calls that Grafana 13
// still serves: folders, dashboards and data sources by UID. Doing it again changes nothing. Errors are
// audit.KindInvalid for what the operator must mend (address, credentials, rights), and
// audit.KindUnavailable for a Grafana that does not answer; they never hold a credential.
package dashboards

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/evenhand/evenhand/audit"
)

//go:embed json/*.json provisioning prometheus
var files embed.FS

// TenantTables are the tables with a column tenant_id that dashboards read, SharedTables the views over
// them and the tables without one: what an account that shows one tenant may read, of the former its rows.
// Such an account fills every board but that of the pipeline, whose markers and jobs have no tenant.
var (
	TenantTables = []string{"rollup_hourly", "rollup_daily", "audit_current", "verdicts", "rejected", "breaches", "tickets"}
	SharedTables = []string{"current_verdicts", "findings", "current_breaches", "bias_taxonomy", "rule_sets"}
)

// Board is a committed dashboard.
type Board struct {
	UID, Title, File string // File is its name without a folder
	JSON             []byte
}

// Boards lists the committed dashboards by file name.
func Boards() ([]Board, error) {
	names, err := fs.Glob(files, "json/*.json")
	if err != nil {
		return nil, err
	}
	var out []Board
	for _, name := range names {
		b, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var head struct{ UID, Title string }
		if err := json.Unmarshal(b, &head); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, Board{head.UID, head.Title, path.Base(name), b})
	}
	return out, nil
}

// Write puts dashboards and provisioning files into a folder, which is made when absent: json/ for the
// path that provisioning/dashboards names, provisioning/ for Grafana's own, prometheus/ for Prometheus' rules. Files of the same names are
// overwritten. It returns what it wrote, relative to dir.
func Write(dir string) (written []string, err error) {
	const op = "dashboards: write"
	err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err != nil || d.IsDir() {
			if err == nil {
				err = os.MkdirAll(to, 0o755)
			}
			return err
		}
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		written = append(written, name)
		return os.WriteFile(to, b, 0o644) // Grafana reads them as another user; they hold no secret
	})
	return written, audit.E(op, audit.KindInvalid, err)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

type doctorCmd struct {
	DataDir string `help:"Folder of the broker's and the store's data." placeholder:"DIR"`
	JSON    bool   `help:"Print JSON." name:"json"`
}

// diagnosis is one line of the doctor: ok, warn or bad, what, and the mend.
type diagnosis struct {
	State string `json:"state"`
	What  string `json:"what"`
	Says  string `json:"says"`
}

// Run looks and reports; exit status 3 when something is bad.
func (cmd *doctorCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+cmd.DataDir)
	}
	d := defaultSettings()
	d.ClickHouse.Addr = nil
	s, err := c.loadWhole(d, allRoles, false)
	var out []diagnosis
	add := func(what string, err error, fine string) {
		if err != nil {
			out = append(out, diagnosis{"bad", what, err.Error()})
		} else {
			out = append(out, diagnosis{"ok", what, fine})
		}
	}
	add("settings", err, "all keys are known and in range")
	if err == nil {
		packs, own, perr := packsFlags{}.inForce(c)
		fine := count(len(packs), "pack")
		if s.Rules.Dir != "" {
			fine += fmt.Sprintf(", %d of them of rules.dir", len(own))
		}
		add("rule packs", perr, fine)
		if len(s.Kafka.Brokers) > 0 || len(s.ClickHouse.Addr) > 0 {
			out = append(out, outside(ctx, s)...)
		} else {
			out = append(out, embedded(ctx, s)...)
		}
		up := len(s.Kafka.Brokers) == 0 && len(s.ClickHouse.Addr) == 0
		files := openFiles()
		if r, ok := findRunning(s.DataDir); ok && up {
			files = openFilesOf(r.PID)
		}
		out = append(out, diagnoseFiles(files, up))
		out = append(out, diagnoseAccess(ctx, s, up)...)
		out = append(out, tracker(ctx, s), s.Judge.asked(ctx, s.Judge.diagnose(s.PII.Mask)), s.Retention.diagnose())
	}
	bad := false
	for _, x := range out {
		bad = bad || x.State == "bad"
		if !cmd.JSON {
			fmt.Fprintf(std.out, "%-5s %-18s %s\n", x.State, x.What, strings.ReplaceAll(x.Says, "\n", "\n                         "))
		}
	}
	if cmd.JSON {
		if err := json.NewEncoder(std.out).Encode(out); err != nil {
			return err
		}
	}
	if bad {
		return exitCode(3)
	}
	return nil
}

// embedded looks at what 'evenhand up' needs.
func embedded(ctx context.Context, s settings) (out []diagnosis) {
	add := func(state, what, says string) { out = append(out, diagnosis{state, what, says}) }
	lib, err := engine.Find(s.Engine.Lib)
	if err != nil {
		add("bad", "engine library", err.Error())
	} else {
		add("ok", "engine library", lib)
	}
	for _, f := range mounts(s.folders()) {
		out = append(out, f.diagnose())
	}
	r, running := findRunning(s.DataDir)
	if !running {
		if l, err := net.Listen("tcp", s.HTTP.Addr); err != nil {
			add("bad", "http.addr", fmt.Sprintf("%s is taken; choose another with --http or EVENHAND_HTTP_ADDR", s.HTTP.Addr))
		} else {
			_ = l.Close()
			add("ok", "http.addr", s.HTTP.Addr+" is free")
		}
		add("ok", "evenhand up", "not running")
		return out
	}
	add("ok", "evenhand up", fmt.Sprintf("running as process %d since %s at %s", r.PID, r.Started.Format(time.RFC3339), r.HTTP))
	p, err := engine.Running(engineDir(s), engine.Reader)
	if err == nil {
		err = pingStore(ctx, p.Config())
	}
	if err != nil {
		add("bad", "store", err.Error()+storeMend(p.PID))
	} else {
		add("ok", "store", "answers a query")
		out = append(out, lastRuns(ctx, p.Config()))
	}
	out = append(out, readiness(ctx, r.HTTP))
	if p, err := engine.Running(engineDir(s), engine.API); err == nil {
		out = append(out, policies(ctx, p.Config(), string(engine.API)))
	}
	k := s.kafka()
	k.Brokers = []string{r.Kafka}
	out = append(out, topicsState(ctx, k, s))
	return out
}

// outside looks at what 'evenhand run' needs.
func outside(ctx context.Context, s settings) (out []diagnosis) {
	if len(s.Kafka.Brokers) == 0 {
		out = append(out, diagnosis{"bad", "kafka", "kafka.brokers is not set"})
	} else {
		out = append(out, topicsState(ctx, s.kafka(), s))
		out = append(out, keptTopics(ctx, s.kafka(), s.Retention)...)
	}
	if len(s.ClickHouse.Addr) == 0 {
		return append(out, diagnosis{"bad", "clickhouse", "clickhouse.addr is not set"})
	}
	if err := pingStore(ctx, s.clickhouse()); err != nil {
		mend := ""
		if notMigrated(err) {
			mend = "; 'evenhand migrate' makes database and tables, and 'evenhand run' does when it starts"
		}
		return append(out, diagnosis{"bad", "clickhouse", err.Error() + mend})
	}
	out = append(out, diagnosis{"ok", "clickhouse", "answers a query"}, lastRuns(ctx, s.clickhouse()))
	if s.ClickHouse.ReaderUsername == "" {
		return append(out, diagnosis{"warn", "row policies", "Evenhand's queries alone keep tenants apart; set clickhouse.reader_username to an account with row policies for a second belt, see docs/operations.md"})
	}
	return append(out, policies(ctx, s.reader(), s.ClickHouse.ReaderUsername))
}

// topicsState asks for the topics and compares their settings.
func topicsState(ctx context.Context, k kafkaconn.Config, s settings) diagnosis {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	want := s.topics()
	have, err := kafkaconn.List(ctx, k, want)
	if err != nil {
		return diagnosis{"bad", "kafka", fmt.Sprintf("%s: %v", strings.Join(k.Brokers, ","), err)}
	}
	fine := fmt.Sprintf("%s, %d topics", strings.Join(k.Brokers, ","), len(have))
	faults, warnings := kafkaconn.Compare(want, have)
	if len(have) < len(want) {
		warnings = append(warnings, fmt.Sprintf("%d of %d topics exist; 'evenhand topics' creates the others, or this account may not describe them: %s", len(have), len(want), strings.Join(missing(want, have), ", ")))
	}
	switch {
	case len(faults) > 0:
		return diagnosis{"bad", "kafka", strings.Join(append(faults, warnings...), "\n")}
	case len(warnings) > 0:
		return diagnosis{"warn", "kafka", fine + "\n" + strings.Join(warnings, "\n")}
	}
	return diagnosis{"ok", "kafka", fine}
}

// missing names the topics that are wanted and not there.
func missing(want []kafkaconn.Topic, have []kafkaconn.TopicState) (names []string) {
	for _, t := range want {
		if !slices.ContainsFunc(have, func(is kafkaconn.TopicState) bool { return is.Name == t.Name }) {
			names = append(names, t.Name)
		}
	}
	return names
}

// storeMend says what helps an embedded engine, of that process, that fails a query.
func storeMend(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("\n'evenhand up' starts an engine again that hangs or has died, within a minute, and logs why; where that does not help: kill -9 %d", pid)
}

// notMigrated tells whether a query failed for want of the database or of a table.
func notMigrated(err error) bool {
	const unknownTable, unknownDatabase = 60, 81
	code := chconn.Code(err)
	return code == unknownTable || code == unknownDatabase
}

func pingStore(ctx context.Context, cfg chconn.Config) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := chconn.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	var n uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM ingest_batches").Scan(&n); err != nil {
		return chconn.Wrap("query", err)
	}
	return nil
}

// readiness asks the running process itself.
func readiness(ctx context.Context, url string) diagnosis {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var checks strings.Builder
	if err := askReady(ctx, url, &checks); err != nil {
		return diagnosis{"bad", "ready", strings.TrimSpace(err.Error() + "\n" + checks.String())}
	}
	return diagnosis{"ok", "ready", "all of the process's own checks"}
}

// lastRuns names the jobs whose last run did not succeed.
func lastRuns(ctx context.Context, cfg chconn.Config) diagnosis {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := chconn.Open(cfg)
	if err != nil {
		return diagnosis{"bad", "jobs", err.Error()}
	}
	defer func() { _ = conn.Close() }()
	last, err := jobs.NewRows(conn, cfg.Database).Last(ctx)
	if err != nil {
		return diagnosis{"bad", "jobs", err.Error()}
	}
	var failed []string
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if l := last[name]; l.Status != jobs.Done && l.Status != jobs.Canceled {
			failed = append(failed, fmt.Sprintf("%s (%s at %s)", name, l.Status, l.Finished.UTC().Format(time.RFC3339)))
		}
	}
	if len(failed) > 0 {
		return diagnosis{"warn", "jobs", "the last run did not succeed of " + strings.Join(failed, ", ") + "; 'evenhand jobs list' says why"}
	}
	return diagnosis{"ok", "jobs", count(len(last), "job") + " ran, each with success when it did last"}
}

// engineDir and brokerDir are the folders of the embedded store and broker.
func engineDir(s settings) string { return filepath.Join(s.DataDir, "store") }
func brokerDir(s settings) string { return filepath.Join(s.DataDir, "broker") }

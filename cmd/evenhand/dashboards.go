package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/dashboards"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

type dashboardsCmd struct {
	Push  dashboardsPushCmd  `cmd:"" help:"Bring the dashboards, and the data source if asked, to a Grafana."`
	Write dashboardsWriteCmd `cmd:"" help:"Write dashboards, data source and alert rules as files for Grafana's provisioning."`
}

type dashboardsPushCmd struct {
	URL          string        `help:"Grafana's address, with its path if it has one." name:"url" required:"" placeholder:"URL"`
	Token        string        `help:"A service account's token." env:"GRAFANA_TOKEN" placeholder:"TOKEN"`
	TokenFile    string        `help:"File that holds it." type:"existingfile" placeholder:"FILE"`
	User         string        `help:"Sign in by name instead." placeholder:"NAME"`
	Password     string        `help:"Its password." env:"GRAFANA_PASSWORD" placeholder:"TEXT"`
	PasswordFile string        `help:"File that holds it." type:"existingfile" placeholder:"FILE"`
	Folder       string        `help:"Title of the folder, when it is made." default:"Evenhand"`
	Timeout      time.Duration `help:"Of one call." default:"15s"`
	DryRun       bool          `help:"Only look, and tell what would be done."`
	JSON         bool          `help:"Print JSON." name:"json"`

	FromUp            bool   `help:"Data source: the store of the running 'evenhand up', which Grafana must reach on this machine." name:"from-up"`
	DataDir           string `help:"Its data folder." placeholder:"DIR"`
	Store             string `help:"Data source: a ClickHouse as Grafana reaches it." placeholder:"HOST:PORT"`
	StoreHTTP         bool   `help:"The port speaks HTTP, not the native protocol." name:"store-http"`
	StoreTLS          bool   `help:"The port speaks TLS." name:"store-tls"`
	StoreUser         string `help:"Who reads there." default:"grafana"`
	StorePasswordFile string `help:"File with the reader's password." type:"existingfile" placeholder:"FILE"`
	Database          string `help:"Database of the tables." default:"evenhand"`
}

func (dashboardsPushCmd) Help() string {
	return `Makes the folder "evenhand" and saves the dashboards in it; a second time changes what differs. Boards that were changed
there are overwritten (Grafana keeps their history): save a copy under another name to change one. Alert rules come by
files only: see 'evenhand dashboards write'.

Examples:
  evenhand dashboards push --url http://127.0.0.1:3000 --token-file token --from-up
  evenhand dashboards push --url https://grafana.example --token-file token --store ch.example:9440 --store-tls --store-password-file pw
  evenhand dashboards push --url http://127.0.0.1:3000 --user admin --password-file pw --dry-run`
}

// Run pushes.
func (cmd *dashboardsPushCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	to := dashboards.Target{URL: cmd.URL, User: cmd.User, Timeout: cmd.Timeout}
	var errs [3]error
	to.Token, errs[0] = given("--token", cmd.Token, cmd.TokenFile)
	to.Password, errs[1] = given("--password", cmd.Password, cmd.PasswordFile)
	o := dashboards.Options{Folder: cmd.Folder, DryRun: cmd.DryRun, Message: "evenhand " + version()}
	o.Source, errs[2] = cmd.source(c)
	if err := errors.Join(errs[:]...); err != nil {
		return &settingsError{err}
	}
	if to.User != "" && cmd.TokenFile == "" {
		to.Token = "" // of the environment
	}
	steps, err := dashboards.Push(ctx, to, o)
	if cmd.JSON {
		if steps == nil {
			steps = []dashboards.Step{}
		}
		return errors.Join(printJSON(std.out, map[string]any{"dry_run": cmd.DryRun, "steps": steps}), err)
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	for _, s := range steps {
		did := s.Did
		if cmd.DryRun && (did == dashboards.Created || did == dashboards.Updated) {
			did = "would be " + did
		}
		url := ""
		if s.URL != "" {
			url = strings.TrimSuffix(cmd.URL, "/") + s.URL
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", s.What, s.Name, did, url)
	}
	return errors.Join(t.Flush(), err)
}

// given takes a secret from a flag or the file beside it.
func given(flag, value, file string) (string, error) {
	if file == "" {
		return value, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s-file: %w", flag, err)
	}
	s := strings.TrimSpace(string(b))
	if s == "" {
		return "", fmt.Errorf("%s-file: %s is empty", flag, file)
	}
	return s, nil
}

// source is the data source to push, nil when none was asked for.
func (cmd *dashboardsPushCmd) source(c *cli) (*dashboards.Source, error) {
	switch {
	case cmd.FromUp && cmd.Store != "":
		return nil, errors.New("--from-up, --store: give one of them")
	case cmd.FromUp:
		if cmd.DataDir != "" {
			c.Set = append(c.Set, "data_dir="+cmd.DataDir)
		}
		s, err := c.load(defaultSettings())
		if err != nil {
			return nil, err
		}
		p, err := engine.Running(engineDir(s), engine.Grafana)
		if err != nil {
			return nil, err
		}
		out, err := cmd.at(p.Native)
		if err == nil {
			out.HTTP, out.TLS, out.User, out.Password, out.Database = false, false, string(p.User), p.Password, p.Database
		}
		return out, err
	case cmd.Store == "":
		return nil, nil
	}
	if cmd.StorePasswordFile == "" {
		return nil, errors.New("--store-password-file: is not given")
	}
	password, err := given("--store-password", "", cmd.StorePasswordFile)
	if err != nil {
		return nil, err
	}
	out, err := cmd.at(cmd.Store)
	if err == nil {
		out.Password = password
	}
	return out, err
}

func (cmd *dashboardsPushCmd) at(addr string) (*dashboards.Source, error) {
	host, port, err := net.SplitHostPort(addr)
	n, perr := strconv.ParseUint(port, 10, 16)
	if err != nil || perr != nil || host == "" {
		return nil, fmt.Errorf("--store: %q is not host:port", addr)
	}
	return &dashboards.Source{Host: host, Port: int(n), HTTP: cmd.StoreHTTP, TLS: cmd.StoreTLS, Database: cmd.Database, User: cmd.StoreUser}, nil
}

type dashboardsWriteCmd struct {
	Dir string `arg:"" help:"Folder, made when absent; files of the same names are overwritten." placeholder:"DIR"`
}

func (dashboardsWriteCmd) Help() string {
	return `Writes json/ (the dashboards) and provisioning/ (data source, where the dashboards lie, alert rules). Mount or copy provisioning/ to
/etc/grafana/provisioning and json/ to /var/lib/grafana/dashboards; Grafana's environment names the store in
EVENHAND_CLICKHOUSE_HOST and the reader's password in EVENHAND_GRAFANA_PASSWORD.

Example:
  evenhand dashboards write ./grafana`
}

// Run writes the files.
func (cmd *dashboardsWriteCmd) Run(std *stdio) error {
	written, err := dashboards.Write(cmd.Dir)
	for _, name := range written {
		fmt.Fprintln(std.out, name)
	}
	return err
}

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/evenhand/evenhand/internal/obs"
)

type runCmd struct {
	Roles []string `help:"Roles of this process: pipeline, api, analyzer, jobs, remediation, judge." default:"pipeline,api,analyzer,jobs,remediation,judge" placeholder:"ROLE"`
	HTTP  string   `help:"Where the doors listen." name:"http" placeholder:"HOST:PORT"`
}

func (runCmd) Help() string {
	return `Examples:
  evenhand run --set kafka.brokers=kafka:9092 --set clickhouse.addr=clickhouse:9000
  EVENHAND_KAFKA_BROKERS=kafka:9092 EVENHAND_CLICKHOUSE_ADDR=clickhouse:9000 evenhand run --roles pipeline
  PORT=8080 evenhand run --roles analyzer        (stateless; no Kafka, no ClickHouse)`
}

// Run serves the chosen roles against outside services until a signal.
func (cmd *runCmd) Run(ctx context.Context, c *cli, io *stdio) error {
	outliveLogs()
	if len(cmd.Roles) == 0 {
		return &settingsError{fmt.Errorf("--roles: is empty; want some of %s, or leave it out for all", strings.Join(allRoles, ", "))}
	}
	for _, r := range cmd.Roles {
		if !slices.Contains(allRoles, r) {
			return &settingsError{fmt.Errorf("--roles: %q is not one of %s", r, strings.Join(allRoles, ", "))}
		}
	}
	if cmd.HTTP != "" {
		c.Set = append(c.Set, "http.addr="+cmd.HTTP)
	}
	s, err := c.loadWhole(defaultSettings(), cmd.Roles, false)
	if err != nil {
		return err
	}
	log, err := obs.NewLogger(io.err, s.Log)
	if err != nil {
		return &settingsError{err}
	}
	st, err := start(ctx, s, cmd.Roles, false, log)
	if err != nil {
		return err
	}
	defer st.close(context.WithoutCancel(ctx))
	log.Info("evenhand is running", "roles", cmd.Roles, "http", st.listener.Addr().String(), "version", version())
	return st.serve(ctx)
}

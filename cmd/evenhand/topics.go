package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/evenhand/evenhand/internal/config"
	"github.com/evenhand/evenhand/internal/kafkaconn"
)

type topicsCmd struct {
	List    bool   `help:"Only list what is there."`
	JSON    bool   `help:"Print JSON." name:"json"`
	DataDir string `help:"Ask the running 'evenhand up' of this data folder." placeholder:"DIR"`
}

// Run creates missing topics and lists all.
func (cmd *topicsCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if cmd.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+cmd.DataDir)
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	if len(s.Kafka.Brokers) == 0 {
		r, ok := findRunning(s.DataDir)
		if !ok {
			return notUp(s.DataDir, "name its folder with --data-dir, or set kafka.brokers")
		}
		s.Kafka.Brokers = []string{r.Kafka}
	}
	if err := s.kafka().Validate(); err != nil {
		return &settingsError{err}
	}
	topics := s.topics()
	if !cmd.List {
		done, err := kafkaconn.Ensure(ctx, s.kafka(), topics, s.Kafka.Replication)
		if err != nil {
			return err
		}
		for _, name := range done.Created {
			fmt.Fprintln(std.err, "created", name)
		}
		for _, w := range done.Warnings {
			fmt.Fprintln(std.err, "warning:", w)
		}
	}
	list, err := kafkaconn.List(ctx, s.kafka(), topics)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(std.out).Encode(list)
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "TOPIC\tPARTITIONS\tTIMESTAMPS\tCLEANUP")
	for _, is := range list {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", is.Name, is.Partitions, is.Config["message.timestamp.type"], is.Config["cleanup.policy"])
	}
	return t.Flush()
}

type settingsCmd struct{}

func (settingsCmd) Help() string {
	return `Ends with status 2 and every fault where 'up' or 'run' would not start with these settings. It looks into the rule packs of rules.dir and the models
of classifier.model, classifier.encoder_model and classifier.others_model, too.`
}

// Run prints all settings.
func (settingsCmd) Run(c *cli, std *stdio) error {
	s, err := c.loadWhole(defaultSettings(), allRoles, false)
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tVARIABLE\tVALUE")
	for _, x := range config.List(s) {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Key, x.Env, strings.TrimSpace(x.Value))
	}
	if e := t.Flush(); e != nil {
		return e
	}
	return err
}

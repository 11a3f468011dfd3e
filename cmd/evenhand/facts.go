package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/evenhand/evenhand/facts"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/repair"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// revealSettings are what may be set about seeing what is masked.
type revealSettings struct {
	// PerHour is how often one caller may, over all processes. Default 30; 0..10000.
	PerHour int `koanf:"per_hour"`
}

func (s revealSettings) validate() error {
	if s.PerHour < 0 || s.PerHour > 10_000 {
		return fmt.Errorf("reveal.per_hour: %d is not in 0..10000", s.PerHour)
	}
	return nil
}

// facts makes the writer of what people and outside analyzers say. It needs the store, and st.publisher,
// which stays the stack's.
func (st *stack) facts() (*facts.Writer, error) {
	db := st.chconfig.Database
	sink, err := st.sink()
	if err != nil {
		return nil, err
	}
	return facts.New(facts.Parts{
		Store: store.New(st.conn, db), Rows: clickhouse.New(st.conn, db, sink), Current: repair.New(st.conn, db),
		Stream: st.publisher, Opinions: st.publisher,
		TextsGo: textsGo(st.settings, st.conn, db),
		Told:    st.tellVerdict(), RevealsPerHour: st.settings.Reveal.PerHour, Observer: st.metrics, Logger: st.log,
	})
}

type taxonomyCmd struct {
	List taxonomyListCmd `cmd:"" help:"List the keys with severity and description."`
	Put  taxonomyPutCmd  `cmd:"" help:"Add a key, or give a known one another severity or description."`
}

type taxonomyListCmd struct {
	storeFlags
	JSON bool `help:"Print JSON." name:"json"`
}

type taxonomyPutCmd struct {
	storeFlags
	Key         string `arg:"" help:"The key, such as brand.tone."`
	Severity    uint8  `required:"" help:"1 to 5: how urgent a person's look is."`
	Description string `help:"What it means; a known key keeps its own without."`
	JSON        bool   `help:"Print the entry as JSON." name:"json"`
}

func (taxonomyCmd) Help() string {
	return `Bias types of outside analyzers and tags of reviewers must be keys of the taxonomy. It holds for all tenants. Keys stay for
ever: records bear them. Upgrades keep what was changed here.

Examples:
  evenhand taxonomy list
  evenhand taxonomy put brand.tone --severity 2 --description "Not how we speak to customers"
  evenhand taxonomy put representation --severity 4 --json`
}

// entryJSON is an entry as it is printed; its names are those of GraphQL.
type entryJSON struct {
	ID          uint32 `json:"id"`
	Key         string `json:"biasKey"`
	Severity    uint8  `json:"severityLevel"`
	Description string `json:"description"`
}

// Run lists the vocabulary.
func (cmd *taxonomyListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	s, conn, err := cmd.open(c, engine.Reader)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	list, err := facts.NewVocabulary(store.New(conn, s.ClickHouse.Database), nil).List(ctx)
	if err != nil {
		return err
	}
	if cmd.JSON {
		out := make([]entryJSON, 0, len(list))
		for _, e := range list {
			out = append(out, entryJSON{e.ID, e.Key, e.Severity, e.Description})
		}
		enc := json.NewEncoder(std.out)
		enc.SetIndent("", "  ")
		return enc.Encode(out)
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "KEY\tSEVERITY\tDESCRIPTION")
	for _, e := range list {
		fmt.Fprintf(t, "%s\t%d\t%s\n", inLine(e.Key), e.Severity, inLine(e.Description))
	}
	return t.Flush()
}

// Run puts an entry.
func (cmd *taxonomyPutCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	entry := store.TaxonomyEntry{Key: cmd.Key, Severity: cmd.Severity, Description: cmd.Description}
	if err := facts.CheckEntry(entry); err != nil {
		return &settingsError{err}
	}
	s, conn, err := cmd.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	db := s.ClickHouse.Database
	e, err := facts.NewVocabulary(store.New(conn, db), clickhouse.New(conn, db, s.sink())).Put(ctx, entry)
	if err != nil {
		return err
	}
	if cmd.JSON {
		return json.NewEncoder(std.out).Encode(entryJSON{e.ID, e.Key, e.Severity, e.Description})
	}
	fmt.Fprintf(std.out, "%s  severity %d  %s\n", e.Key, e.Severity, e.Description)
	return nil
}

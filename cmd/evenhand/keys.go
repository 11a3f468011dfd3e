package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/embedded/engine"
)

type keysCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make an API key for a machine and show it once."`
	List   keyListCmd   `cmd:"" help:"List the keys."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke a key; processes notice within ten seconds."`
}

// keyFlags choose the store and the form of the answer.
type keyFlags struct {
	storeFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// use calls f with the table of keys.
func (k keyFlags) use(c *cli, f func(*auth.KeyTable) error) error {
	s, conn, err := k.open(c, engine.Writer)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return f(auth.NewKeyTable(conn, s.ClickHouse.Database))
}

type keyCreateCmd struct {
	keyFlags
	Tenant  string   `help:"Tenant whose records it reaches." required:"" placeholder:"NAME"`
	Name    string   `help:"Whose key it is." required:"" placeholder:"TEXT"`
	Scope   []string `help:"What it may do: ingest, analyze, guard, read, texts, people, annotate, review, administer, approve; repeatable." required:"" placeholder:"SCOPE"`
	Expires string   `help:"After how many days (90d), hours (12h), or on which day (YYYY-MM-DD) it ends; never when not given." placeholder:"TIME"`
	By      string   `help:"Who makes it; the system user when not given." placeholder:"NAME"`
}

func (keyCreateCmd) Help() string {
	return `Only a hash of the key is stored: what is lost is made anew. Send it as Authorization: Bearer or X-API-Key.

Examples:
  evenhand keys create --tenant acme --name crawler --scope ingest,analyze --expires 90d
  evenhand keys create --tenant acme --name analyzer --scope annotate,read --json`
}

// Run makes a key. The key alone goes to the output, so that it can be put into a file.
func (cmd *keyCreateCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	now := time.Now().UTC().Truncate(time.Millisecond)
	expires, err := expiry(cmd.Expires, now)
	if err != nil {
		return err
	}
	scopes := make([]auth.Permission, len(cmd.Scope))
	for i, s := range cmd.Scope {
		scopes[i] = auth.Permission(s)
	}
	k, raw, err := auth.NewAPIKey(cmd.Tenant, cmd.Name, scopes, me(cmd.By), now, expires)
	if err != nil {
		return asUsage(err)
	}
	return cmd.use(c, func(t *auth.KeyTable) error {
		if err := t.Add(ctx, k); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(std.out, struct {
				auth.APIKey
				Key string `json:"key"`
			}{k, raw.Reveal()})
		}
		fmt.Fprintln(std.out, raw.Reveal())
		fmt.Fprintf(std.err, "Key %s of tenant %s may %s%s. It is shown this once.\n", k.ID, k.Tenant, scopesOf(k), until(k))
		return nil
	})
}

// expiry reads --expires.
func expiry(given string, now time.Time) (time.Time, error) {
	if given == "" {
		return time.Time{}, nil
	}
	if d, err := age(given); err == nil {
		return now.Add(d), nil
	}
	if day, err := time.Parse(time.DateOnly, given); err == nil {
		return day, nil
	}
	return time.Time{}, &settingsError{fmt.Errorf("--expires: %q is none of 90d, 12h, 2027-01-31", given)}
}

func scopesOf(k auth.APIKey) string {
	out := make([]string, len(k.Scopes))
	for i, s := range k.Scopes {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}

func until(k auth.APIKey) string {
	if k.Expires.IsZero() {
		return ""
	}
	return " until " + k.Expires.Format("2006-01-02 15:04") + " UTC"
}

type keyListCmd struct{ keyFlags }

// Run lists the keys, newest first.
func (cmd *keyListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.use(c, func(t *auth.KeyTable) error {
		keys, err := t.Keys(ctx)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(std.out, orEmpty(keys))
		}
		w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "KEY\tTENANT\tNAME\tSCOPES\tMADE\tBY\tEXPIRES\tREVOKED")
		for _, k := range keys {
			expires, revoked := "", ""
			if !k.Expires.IsZero() {
				expires = k.Expires.Format("2006-01-02 15:04")
			}
			if !k.Revoked.IsZero() {
				revoked = k.Revoked.Format("2006-01-02 15:04") + " by " + k.RevBy
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Tenant, inLine(k.Name), scopesOf(k), k.Created.Format("2006-01-02 15:04"), k.By, expires, revoked)
		}
		return w.Flush()
	})
}

type keyRevokeCmd struct {
	keyFlags
	ID string `arg:"" help:"The key's id, see 'keys list': the part between evh_ and the next _."`
	By string `help:"Who revokes it; the system user when not given." placeholder:"NAME"`
}

// Run revokes a key.
func (cmd *keyRevokeCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if !auth.ValidKeyID(cmd.ID) {
		return &settingsError{fmt.Errorf("ID: wants the 16 characters between evh_ and the next _, not the whole key")}
	}
	return cmd.use(c, func(t *auth.KeyTable) error {
		k, err := t.Revoke(ctx, cmd.ID, me(cmd.By), time.Now().UTC().Truncate(time.Millisecond))
		if err != nil {
			return asUsage(err)
		}
		if cmd.JSON {
			return printJSON(std.out, k)
		}
		fmt.Fprintf(std.out, "key %s of tenant %s is revoked since %s\n", k.ID, k.Tenant, k.Revoked.Format(time.RFC3339))
		return nil
	})
}

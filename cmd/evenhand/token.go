package main

import (
	"fmt"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
)

type tokenCmd struct {
	DataDir string        `help:"Data folder of the 'evenhand up' that shall take it." placeholder:"DIR"`
	Tenant  string        `help:"Tenant whose records it reaches." required:"" placeholder:"NAME"`
	Role    []string      `help:"viewer, reviewer, admin, service or approver; repeatable." required:"" placeholder:"ROLE"`
	Subject string        `help:"Who bears it; the system user when not given." placeholder:"NAME"`
	TTL     time.Duration `help:"How long it holds, at most 720h." name:"ttl" default:"12h"`
}

func (tokenCmd) Help() string {
	return `Signs with the development key that 'evenhand up' makes in its data folder, and prints the token. For trying things out: whoever reads
the folder can be anybody. 'up' on 127.0.0.1 takes such tokens; elsewhere auth.dev_tokens must say so. Machines get 'evenhand keys create',
people your issuer: docs/auth.md.

Examples:
  evenhand token --tenant acme --role reviewer
  curl -H "Authorization: Bearer $(evenhand token --tenant acme --role service)" …`
}

// Run prints a token.
func (cmd *tokenCmd) Run(c *cli, std *stdio) error {
	if cmd.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+cmd.DataDir)
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return err
	}
	k, err := auth.LoadDevKey(s.DataDir)
	if err != nil {
		return err
	}
	roles := make([]auth.Role, len(cmd.Role))
	for i, r := range cmd.Role {
		roles[i] = auth.Role(r)
	}
	token, err := k.Sign(cmd.Tenant, me(cmd.Subject), roles, cmd.TTL, time.Now())
	if audit.KindOf(err) == audit.KindInvalid {
		return &settingsError{err}
	} else if err != nil {
		return err
	}
	fmt.Fprintln(std.out, token)
	return nil
}

package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	gatedoor "github.com/evenhand/evenhand/gates/door"
	"github.com/evenhand/evenhand/internal/wait"
)

type gatesCmd struct {
	List    gatesListCmd    `cmd:"" help:"List gates, the newest first; those that are open when no state is named."`
	Show    gatesShowCmd    `cmd:"" help:"Show what a gate asks about, and its answer."`
	Approve gatesApproveCmd `cmd:"" help:"Let the answer of the model pass."`
	Deny    gatesDenyCmd    `cmd:"" help:"Keep the answer of the model back."`
	Watch   gatesWatchCmd   `cmd:"" help:"Print gates as they are opened and decided, until Ctrl-C."`
}

func (gatesCmd) Help() string {
	return `Questions to people about critical actions in what models say. Talks to the doors of a running process: the credential says
for whom, and answering wants the permission approve (role approver or admin). See docs/gates.md.

Examples:
  evenhand gates list
  evenhand gates approve 019aa7f2-… --note "checked with finance"
  evenhand gates deny 019aa7f2-… --note "amount above the limit"
  EVENHAND_TOKEN=$(evenhand token --tenant acme --role approver --subject ann) evenhand gates watch --json`
}

// askGates asks the doors of gates; the caller closes the answer. One that is no success is an error, but for a
// conflict, which says who was first.
func (d *doors) askGates(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	res, err := d.send(ctx, method, gatedoor.Path+path, body, headers...)
	if err != nil || res.StatusCode == http.StatusOK || res.StatusCode == http.StatusConflict {
		return res, err
	}
	return nil, d.refusal(res)
}

// readGates asks and decodes the answer.
func (d *doors) readGates(ctx context.Context, method, path string, body, to any) (status int, err error) {
	res, err := d.askGates(ctx, method, path, body)
	if err != nil {
		return 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(io.LimitReader(res.Body, 64<<20)).Decode(to); err != nil {
		return 0, fmt.Errorf("%s: the answer is no JSON of gates", d.base)
	}
	return res.StatusCode, nil
}

// gatePath names a gate in a path.
func gatePath(id string) (string, error) {
	of, err := audit.ParseID(id)
	if err != nil {
		return "", &settingsError{fmt.Errorf("ID: %w", err)}
	}
	return "/" + of.String(), nil
}

type gatesListCmd struct {
	doorsFlags
	State string `help:"open, approved, denied, timeout or all." enum:"open,approved,denied,timeout,all" default:"open" placeholder:"STATE"`
	Limit int    `help:"Gates to list; 1 to 200." default:"50"`
}

// Run lists gates.
func (cmd *gatesListCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	if err := inRange("--limit", cmd.Limit, 1, 200); err != nil {
		return err
	}
	g, err := cmd.doors(c)
	if err != nil {
		return err
	}
	var out struct{ Gates []gates.Gate }
	q := url.Values{"state": {cmd.State}, "limit": {fmt.Sprint(cmd.Limit)}}
	if _, err := g.readGates(ctx, http.MethodGet, "?"+q.Encode(), nil, &out); err != nil {
		return err
	}
	if cmd.JSON {
		return printLines(std.out, out.Gates)
	}
	t := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "GATE\tSTATE\tOPENED\tEXPIRES\tRULE\tMATCHED\tBY")
	for i := range out.Gates {
		printGate(t, &out.Gates[i])
	}
	return t.Flush()
}

// printLines prints a JSON object a line.
func printLines[T any](out io.Writer, list []T) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range list {
		if err := enc.Encode(list[i]); err != nil {
			return err
		}
	}
	return nil
}

// printGate prints a gate in one line.
func printGate(out io.Writer, g *gates.Gate) {
	matched, by := "", ""
	if g.Request.MatchedText != nil {
		matched = fmt.Sprintf("%q", cut(*g.Request.MatchedText, 60))
	}
	if g.Decision != nil {
		by = inLine(g.Decision.By)
	}
	const stamp = "2006-01-02 15:04:05"
	fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, inLine(g.State), g.Opened.Format(stamp), g.Expires.Format(stamp), inLine(g.Request.Rule.ID), matched, by)
}

type gatesShowCmd struct {
	doorsFlags
	ID string `arg:"" help:"The gate's id, as the list shows it."`
}

// Run shows a gate.
func (cmd *gatesShowCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	path, err := gatePath(cmd.ID)
	if err != nil {
		return err
	}
	g, err := cmd.doors(c)
	if err != nil {
		return err
	}
	var gate gates.Gate
	if _, err := g.readGates(ctx, http.MethodGet, path, nil, &gate); err != nil {
		return err
	}
	if cmd.JSON {
		return printLines(std.out, []gates.Gate{gate})
	}
	explainGate(std.out, &gate)
	return nil
}

// explainGate prints all of a gate. Most of it was chosen by whoever made the call, and decides what is approved here.
func explainGate(out io.Writer, g *gates.Gate) {
	fmt.Fprintf(out, "gate %s of tenant %s: %s\n", g.ID, inLine(g.Tenant), inLine(g.State))
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "  %s\t%s\n", inLine(name), inLine(value))
		}
	}
	for _, m := range g.Request.Rules {
		matched := "(text not shown or dropped)"
		if m.MatchedText != nil {
			matched = fmt.Sprintf("%q", *m.MatchedText)
		}
		line(m.Rule.ID, m.Rule.Description+": "+matched)
	}
	line("model", strings.TrimSpace(g.Request.Provider+" "+g.Model+" "+g.Request.Method))
	line("application", g.Application)
	line("asked by", g.Requester)
	if g.Interaction != nil {
		line("interaction", g.Interaction.String())
	}
	line("trace", g.TraceID)
	line("opened", g.Opened.Format(time.RFC3339))
	line("expires", g.Expires.Format(time.RFC3339))
	if d := g.Decision; d != nil {
		line("decided", d.At.Format(time.RFC3339))
		line("by", d.By)
		line("detail", d.Detail)
	}
	_ = t.Flush()
}

// gateAnswerFlags are of both answers.
type gateAnswerFlags struct {
	doorsFlags
	ID   string `arg:"" help:"The gate's id, as the list shows it."`
	Note string `help:"Words for who asked; kept as long as the texts." placeholder:"TEXT"`
}

type gatesApproveCmd struct{ gateAnswerFlags }

func (gatesApproveCmd) Help() string { return gateAnswerHelp("approve") }

// Run approves.
func (cmd *gatesApproveCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.answer(ctx, c, std, "approve")
}

type gatesDenyCmd struct{ gateAnswerFlags }

func (gatesDenyCmd) Help() string { return gateAnswerHelp("deny") }

// Run denies.
func (cmd *gatesDenyCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	return cmd.answer(ctx, c, std, "deny")
}

func gateAnswerHelp(verb string) string {
	return `The first answer holds. Exit status 3 when another one was first, or the time was over.

Examples:
  evenhand gates ` + verb + ` 019aa7f2-51c3-7cc1-8c36-6f2b4cf1d7a0
  evenhand gates ` + verb + ` 019aa7f2-51c3-7cc1-8c36-6f2b4cf1d7a0 --note "because" --json`
}

func (f *gateAnswerFlags) answer(ctx context.Context, c *cli, std *stdio, verb string) error {
	path, err := gatePath(f.ID)
	if err != nil {
		return err
	}
	g, err := f.doors(c)
	if err != nil {
		return err
	}
	var out struct {
		gates.Gate
		Error struct{ Details struct{ Gate gates.Gate } }
	}
	status, err := g.readGates(ctx, http.MethodPost, path+"/decision", map[string]string{"decision": verb, "note": f.Note}, &out)
	if err != nil {
		return err
	}
	gate := out.Gate
	if status == http.StatusConflict {
		gate = out.Error.Details.Gate
	}
	if f.JSON {
		err = printLines(std.out, []gates.Gate{gate})
	} else {
		explainGate(std.out, &gate)
	}
	if err == nil && status == http.StatusConflict {
		fmt.Fprintln(std.err, "another answer was first, and holds")
		return exitCode(3)
	}
	return err
}

type gatesWatchCmd struct{ doorsFlags }

func (gatesWatchCmd) Help() string {
	return `Prints what is open, then the news. After a break it goes on where it was.

Examples:
  evenhand gates watch
  evenhand gates watch --json | jq -r 'select(.state=="open") | .id'`
}

// errStream is a stream that does not speak as it should.
var errStream = errors.New("the stream broke off")

// Run follows the stream.
func (cmd *gatesWatchCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	g, err := cmd.doors(c)
	if err != nil {
		return err
	}
	last := ""
	for fails := 0; ctx.Err() == nil; fails++ {
		var headers []string
		if last != "" {
			headers = []string{"Last-Event-ID", last}
		}
		res, err := g.askGates(ctx, http.MethodGet, "/events", nil, headers...)
		if err != nil && (last == "" || fails > 10) && ctx.Err() == nil {
			return err
		}
		if err == nil {
			fails = 0
			last, err = cmd.follow(res.Body, std.out, last)
			_ = res.Body.Close()
			if err != nil && !errors.Is(err, errStream) {
				return err
			}
		}
		wait.For(ctx, wait.Backoff(time.Second, fails+1))
	}
	return ctx.Err()
}

// follow prints events until the stream ends, or tells why the caller is sent away; it gives the last one's id.
func (cmd *gatesWatchCmd) follow(stream io.Reader, out io.Writer, last string) (string, error) {
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 4<<20)
	id, event := last, ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			if event == "error" {
				return last, cmp.Or(told([]byte(value)), errStream)
			}
			var gate gates.Gate
			if json.Unmarshal([]byte(value), &gate) != nil {
				return last, errStream
			}
			last = id
			if cmd.JSON {
				if err := printLines(out, []gates.Gate{gate}); err != nil {
					return last, err
				}
				continue
			}
			printGate(out, &gate)
		}
	}
	return last, errStream
}

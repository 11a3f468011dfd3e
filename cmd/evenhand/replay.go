package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/door"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge/mend"
	"github.com/evenhand/evenhand/store"
)

// upstreamOf gives the gateway's upstream that a call went through, "" where it did not, or where its texts are dropped.
func upstreamOf(metadata string) string {
	var m struct {
		Gateway struct {
			Upstream string `json:"upstream"`
		} `json:"gateway"`
	}
	_ = json.Unmarshal([]byte(metadata), &m) // canonical JSON of ours, or ""
	return m.Gateway.Upstream
}

// startReplays makes what serves POST /v1/replay.
func (st *stack) startReplays() (err error) {
	st.mender, err = mend.New(st.settings.Replay, mend.Parts{
		Validator: &mend.Validator{Evaluator: st.asking, Analyze: st.analyze}, Origin: st.asking.origin,
		Decoder: ingest.NewDecoder(st.settings.decoder()), Producer: &frontDoor{st}, Message: kafkaconn.MaxMessage,
	})
	return err
}

// replay serves POST /v1/replay.
func (st *stack) replay(ctx context.Context, r door.ReplayRequest) (any, error) {
	in := r.Event
	if in == nil {
		rec, err := st.reader.WithTenant(r.Tenant).Get(ctx, r.ID)
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, door.ErrNoInteraction
		case err != nil:
			return nil, err
		case rec.TextState == store.TextDropped:
			return nil, audit.E("replay", audit.KindInvalid, mend.ErrTextsDropped)
		}
		in = &rec.Interaction
		in.Tenant = r.Tenant
	}
	res, err := st.mender.Mend(ctx, in, mend.Wish{Rounds: r.Rounds, Model: r.Model})
	if err != nil {
		return nil, err
	}
	return res, nil
}

type replayCmd struct {
	Run   replayRunCmd   `cmd:"" default:"withargs" help:"Validate a stored response and make its call again while it does not pass."`
	Stats replayStatsCmd `cmd:"" help:"Say how often replays mended a response."`
}

func (replayCmd) Help() string {
	return `The judge and the rules validate; the model that answered is asked again with what they found; each round is an interaction of
its own. Talks to the doors of a running process: the credential says whose interaction (permissions guard and texts). See docs/replay.md.

Examples:
  evenhand replay 019aa7f2-…
  evenhand replay 019aa7f2-… --rounds 1 --model gpt-4o --json
  evenhand replay stats --last 720h`
}

type replayRunCmd struct {
	ID     string `arg:"" help:"Id of the interaction."`
	Rounds int    `help:"Replays at most; the process's replay.rounds when not given." placeholder:"N"`
	Model  string `help:"Model to ask instead of the one that answered." placeholder:"NAME"`
	doorsFlags
}

// Run replays one interaction; exit status 3 when its best response does not pass.
func (cmd *replayRunCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	doors, err := cmd.doors(c)
	if err != nil {
		return err
	}
	wish := map[string]any{"id": cmd.ID}
	if cmd.Rounds != 0 {
		wish["rounds"] = cmd.Rounds
	}
	if cmd.Model != "" {
		wish["model"] = cmd.Model
	}
	answer, err := doors.send(ctx, http.MethodPost, "/v1/replay", wish)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return doors.refusal(answer)
	}
	defer func() { _ = answer.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err != nil {
		return err
	}
	var res mend.Result
	if err := json.Unmarshal(b, &res); err != nil {
		return fmt.Errorf("%s: the answer is no result of a replay", doors.base)
	}
	if cmd.JSON {
		fmt.Fprintln(std.out, strings.TrimSpace(string(b)))
	} else {
		printReplay(std.out, &res)
	}
	if res.Outcome != "passed" {
		return exitCode(3)
	}
	return nil
}

func printReplay(out io.Writer, res *mend.Result) {
	for _, r := range res.Rounds {
		kept, score := "", ""
		if r.Best {
			kept = ", kept"
		}
		if r.Score != nil {
			score = " " + r.Score.String()
		}
		fmt.Fprintf(out, "round %d: %s%s%s\n", r.Round, inLine(r.Outcome), score, kept)
		if r.ID != nil {
			fmt.Fprintf(out, "  interaction %s\n", r.ID)
		}
		for _, n := range r.Notes {
			fmt.Fprintf(out, "  %s: %q\n", inLine(n.Issue), n.Excerpt)
		}
		if r.Error != "" {
			fmt.Fprintf(out, "  %s\n", inLine(r.Error))
		}
	}
	fmt.Fprintf(out, "\n%s\n\n", inLines(res.Response))
	fmt.Fprintf(out, "ended: %s; mended: %t; %d tokens in, %d out, %.6f USD\n", inLine(res.Stop), res.Mended, res.Input, res.Output, res.CostUSD)
}

type replayStatsCmd struct {
	figuresFlags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run counts replays.
func (cmd *replayStatsCmd) Run(ctx context.Context, c *cli, std *stdio) error {
	_, figures, w, closing, err := cmd.figures(c)
	if err != nil {
		return err
	}
	defer closing()
	r, err := figures.Replays(ctx, w)
	if err != nil {
		return err
	}
	rate := store.RateOf(r.Mended, r.Runs)
	if cmd.JSON {
		return json.NewEncoder(std.out).Encode(map[string]any{"window": w, "replays": r, "mended": rate})
	}
	fmt.Fprintf(std.out, "%d calls replayed in %d rounds, %d of them unchecked; %d mended", r.Runs, r.Rounds, r.Unchecked, r.Mended)
	if r.Runs > 0 {
		fmt.Fprintf(std.out, ": %.1f %% (Wilson 95 %%: %.1f – %.1f %%)", 100*rate.Rate, 100*rate.Lower, 100*rate.Upper)
	}
	fmt.Fprintln(std.out)
	return nil
}

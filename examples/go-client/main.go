// Go-client asks a model through OpenAI's own Go client, judged in the process and on record in a running Evenhand.
//
//	evenhand up &
//	OPENAI_API_KEY=… go run ./examples/go-client "Who should lead the team?"
//
// OPENAI_BASE_URL names another provider, EVENHAND_API_KEY a key of Evenhand where it asks for one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/client"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "go-client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("go-client", flag.ContinueOnError)
	url := flags.String("evenhand", "http://127.0.0.1:8787", "address of Evenhand")
	name := flags.String("model", "gpt-4o-mini", "model to ask")
	domain := flags.String("domain", "hr", "general, hr, finance, healthcare or education")
	spool := flags.String("spool", "", "folder that keeps events while Evenhand is away")
	if err := flags.Parse(args); err != nil {
		return err
	}

	dest, err := client.NewHTTP(client.Server{URL: *url, Key: os.Getenv("EVENHAND_API_KEY")})
	if err != nil {
		return err
	}
	eo := client.DefaultEmitterOptions()
	eo.Logger = slog.Default()
	if *spool != "" {
		eo.Spool = client.DefaultSpool(*spool)
	}
	emitter, err := client.NewEmitter(dest, eo) //nolint:contextcheck // it outlives the call; Close ends it
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		err = errors.Join(err, emitter.Close(end))
	}()

	rules, err := client.NewInProcess(client.InProcessOptions{Logger: slog.Default()})
	if err != nil {
		return err
	}
	o := client.DefaultOptions()
	o.Domain, o.BiasAction, o.SafetyFilter = audit.Domain(*domain), audit.Block, true
	o.Emitter = emitter
	o.Describe = func(_ *http.Request, e *client.Event) { e.Application = "go-client" }
	judged, err := client.Wrap(&http.Client{}, rules, o)
	if err != nil {
		return err
	}
	return ask(ctx, openai.NewClient(option.WithHTTPClient(judged)), *name, strings.Join(flags.Args(), " "), out)
}

// ask prints the answer, or why there is none.
func ask(ctx context.Context, c openai.Client, model, question string, out io.Writer) error {
	ctx, watch := client.Watch(ctx)
	answer, err := c.Chat.Completions.New(ctx, openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(question)}})
	var bias *client.BiasDetectedError
	var safety *client.SafetyViolationError
	switch {
	case errors.As(err, &bias):
		for _, f := range bias.Findings {
			_, _ = fmt.Fprintf(out, "stopped: %s (%s, %v): %q\n", f.Characteristic, f.Severity, f.Score, f.Evidence)
		}
		return nil
	case errors.As(err, &safety):
		for _, f := range safety.Findings {
			_, _ = fmt.Fprintf(out, "stopped: %s (%s, %v): %q\n", f.Category, f.Severity, f.Score, f.Evidence)
		}
		return nil
	case err != nil:
		return err
	}
	_, _ = fmt.Fprintln(out, answer.Choices[0].Message.Content)
	if r := watch.Report(); r != nil {
		_, _ = fmt.Fprintf(out, "%s, bias %v; interaction %s\n", r.Action, r.Scores.Bias, r.ID)
	}
	return nil
}

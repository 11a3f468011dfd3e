package client_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oairesponses "github.com/openai/openai-go/v3/responses"

	"github.com/evenhand/evenhand/client"
)

// official is OpenAI's own client over ours, with its own repeats.
func official(a *app, p *provider) *openai.Client {
	c := openai.NewClient(option.WithBaseURL(p.URL+"/v1"), option.WithAPIKey("sk-theirs"), option.WithHTTPClient(a.Client))
	return &c
}

func ask() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "gpt-x", Messages: []openai.ChatCompletionMessageParamUnion{openai.SystemMessage("Be brief."), openai.UserMessage("Who?")}}
}

func askResponses() oairesponses.ResponseNewParams {
	return oairesponses.ResponseNewParams{Model: "gpt-x", Instructions: openai.String("Be brief."), Input: oairesponses.ResponseNewParamsInputUnion{OfString: openai.String("Who?")}}
}

// says nothing else than without us.
func TestOfficialClient(t *testing.T) {
	for name, change := range map[string]func(*client.Options){"audit": nil, "block": blocks, "windows": windows} {
		p := newProvider(t, says(completion(clean)))
		a := newApp(t, change)
		got, err := official(a, p).Chat.Completions.New(t.Context(), ask())
		if err != nil || got.Choices[0].Message.Content != clean || got.Usage.TotalTokens != 46 || got.RawJSON() != completion(clean) {
			t.Errorf("%s: %v %v", name, got, err)
		}
		if e := a.event(t); e.Prompt != "Be brief.\n\nWho?" || e.Response != clean {
			t.Errorf("%s: %+v", name, e)
		}

		p = newProvider(t, streams(chunks(clean)))
		a = newApp(t, change)
		stream := official(a, p).Chat.Completions.NewStreaming(t.Context(), ask())
		acc := openai.ChatCompletionAccumulator{}
		for stream.Next() {
			acc.AddChunk(stream.Current())
		}
		if stream.Err() != nil || acc.Choices[0].Message.Content != clean || acc.Usage.TotalTokens != 46 {
			t.Errorf("%s, streamed: %v %v", name, acc, stream.Err())
		}
		_ = stream.Close()
		if e := a.event(t); e.Response != clean || e.Status != "success" {
			t.Errorf("%s, streamed: %+v", name, e)
		}

		p = newProvider(t, says(response(clean)))
		r, err := official(newApp(t, change), p).Responses.New(t.Context(), askResponses())
		if err != nil || r.OutputText() != clean || r.RawJSON() != response(clean) {
			t.Errorf("%s, responses: %v %v", name, r, err)
		}

		p = newProvider(t, streams(responseEvents(clean)))
		events := official(newApp(t, change), p).Responses.NewStreaming(t.Context(), askResponses())
		var last oairesponses.ResponseStreamEventUnion
		for events.Next() {
			last = events.Current()
		}
		if events.Err() != nil || last.Response.OutputText() != clean {
			t.Errorf("%s, responses streamed: %v %v", name, last.RawJSON(), events.Err())
		}
		_ = events.Close()
	}
}

// errors.As finds the seeds' errors, and the model is asked once though the client repeats what failed.
func TestOfficialClientBlocked(t *testing.T) {
	drain := func(next func() bool, err func() error, end func() error) error {
		for next() {
		}
		return errors.Join(err(), end())
	}
	for name, tc := range map[string]struct {
		p      *provider
		change func(*client.Options)
		send   func(c *openai.Client) error
	}{
		"whole": {newProvider(t, says(completion(biased))), blocks, func(c *openai.Client) error {
			_, err := c.Chat.Completions.New(t.Context(), ask())
			return err
		}},
		"held stream": {newProvider(t, streams(chunks(biased))), blocks, func(c *openai.Client) error {
			s := c.Chat.Completions.NewStreaming(t.Context(), ask())
			return drain(s.Next, s.Err, s.Close)
		}},
		"windows": {newProvider(t, streams(chunks("Hello there, good friend. "+biased))), windows, func(c *openai.Client) error {
			s := c.Chat.Completions.NewStreaming(t.Context(), ask())
			return drain(s.Next, s.Err, s.Close)
		}},
		"responses": {newProvider(t, says(response(biased))), blocks, func(c *openai.Client) error {
			_, err := c.Responses.New(t.Context(), askResponses())
			return err
		}},
		"responses streamed": {newProvider(t, streams(responseEvents(biased))), blocks, func(c *openai.Client) error {
			s := c.Responses.NewStreaming(t.Context(), askResponses())
			return drain(s.Next, s.Err, s.Close)
		}},
	} {
		a := newApp(t, tc.change)
		err := tc.send(official(a, tc.p))
		var bias *client.BiasDetectedError
		if !errors.As(err, &bias) || bias.Findings[0].Characteristic != "sex" || tc.p.calls() != 1 {
			t.Errorf("%s: %v, asked %d times", name, err, tc.p.calls())
		}
		if e := a.event(t); e.Status != "blocked" || !strings.Contains(e.Response, "emotional") {
			t.Errorf("%s: %+v", name, e)
		}
	}
	// A gate, and what cannot be judged, are told the same way.
	a := newApp(t, func(o *client.Options) { o.HITLGate = true })
	p := newProvider(t, says(completion(transfer)))
	var denied *client.HumanGateDeniedError
	if _, err := official(a, p).Chat.Completions.New(t.Context(), ask()); !errors.As(err, &denied) || p.calls() != 1 {
		t.Errorf("gate: %v", err)
	}
	p = newProvider(t, says("sorry"))
	var unchecked *client.UncheckedError
	if _, err := official(newApp(t, blocks), p).Chat.Completions.New(t.Context(), ask()); !errors.As(err, &unchecked) || p.calls() != 1 {
		t.Errorf("unchecked: %v", err)
	}
	// What the provider says is still the client's own error.
	p = newProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(404)
		_, _ = w.Write([]byte(`{"error":{"message":"no such model","code":"model_not_found"}}`))
	})
	var typed *openai.Error
	if _, err := official(newApp(t, blocks), p).Chat.Completions.New(t.Context(), ask()); !errors.As(err, &typed) || typed.Code != "model_not_found" {
		t.Errorf("404: %v", err)
	}
}

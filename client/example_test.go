package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/client"
)

// model stands for a provider: it says one thing.
func model(text string) *httptest.Server { return httptest.NewServer(says(completion(text))) }

// askModel stands for any client of an OpenAI-compatible API that takes an *http.Client, as openai-go does with
// option.WithHTTPClient.
func askModel(ctx context.Context, c *http.Client, url string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"gpt-x","messages":[{"role":"user","content":"Who should lead?"}]}`))
	if err != nil {
		return nil, err
	}
	return c.Do(req)
}

// What is discriminatory does not reach the application: seed 000's biasAction block.
func ExampleWrap() {
	provider := model("Not her: women are too emotional to lead.")
	defer provider.Close()
	rules, err := client.NewInProcess(client.InProcessOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := client.DefaultOptions()
	o.Domain, o.BiasAction = audit.HR, audit.Block
	c, err := client.Wrap(&http.Client{}, rules, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseIdleConnections()

	_, err = askModel(context.Background(), c, provider.URL) //nolint:bodyclose // there is none
	var bias *client.BiasDetectedError
	if errors.As(err, &bias) {
		f := bias.Findings[0]
		fmt.Println(f.Characteristic, f.Severity, f.Score, "above", bias.Threshold)
		fmt.Printf("%q\n", f.Evidence)
	}
	// Output:
	// sex MEDIUM 0.6 above 0.15
	// "women are too emotional"
}

// A warning lets the answer pass; what was found lies beside it.
func ExampleWatch() {
	provider := model("Not her: women are too emotional to lead.")
	defer provider.Close()
	rules, err := client.NewInProcess(client.InProcessOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := client.DefaultOptions()
	o.Domain = audit.HR
	c, err := client.Wrap(&http.Client{}, rules, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseIdleConnections()

	ctx, watch := client.Watch(context.Background())
	res, err := askModel(ctx, c, provider.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close() //nolint:errcheck // an example
	r := watch.Report()
	fmt.Println(res.Status, r.Action, r.Reasons, r.Scores.Bias, r.Findings[0].Characteristic)
	fmt.Println(res.Header.Get("X-Evenhand-Action"))
	// Output:
	// 200 OK warn [bias] 0.6 sex
	// warn
}

// A person must approve what a model wants to do: seed 001's gate.
func ExampleOptions_onGateTriggered() {
	provider := model("I will now transfer $5,000 to account 7.")
	defer provider.Close()
	rules, err := client.NewInProcess(client.InProcessOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := client.DefaultOptions()
	o.HITLGate = true
	o.OnGateTriggered = func(_ context.Context, r client.GateRequest) (client.GateDecision, error) {
		fmt.Printf("%s: %q by %s\n", r.Rule.ID, r.MatchedText, r.Method)
		return client.GateDecision{Reason: "Operator rejected the action"}, nil
	}
	c, err := client.Wrap(&http.Client{}, rules, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.CloseIdleConnections()

	_, err = askModel(context.Background(), c, provider.URL) //nolint:bodyclose // there is none
	var denied *client.HumanGateDeniedError
	if errors.As(err, &denied) {
		fmt.Println(denied.Reason+":", denied.Detail)
	}
	// Output:
	// financial: "transfer $5,000" by chat.completions.create
	// denied: Operator rejected the action
}

// Events reach Evenhand behind the application's back.
func ExampleEmitter() {
	evenhand := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println(r.Method, r.URL.Path, r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusAccepted)
	}))
	defer evenhand.Close()
	dest, err := client.NewHTTP(client.Server{URL: evenhand.URL, Key: "evh_key"})
	if err != nil {
		fmt.Println(err)
		return
	}
	o := client.DefaultEmitterOptions()
	o.Redact = func(e *client.Event) { e.UserEmail = "" }
	o.OnDrop = func(reason string, n int) { fmt.Println(n, "dropped:", reason) }
	e, err := client.NewEmitter(dest, o)
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err = e.Emit(client.Event{Application: "hr-bot", Domain: "hr", Prompt: "Who should lead?", Response: "Ask the team."}); err != nil {
		fmt.Println(err) // full, too large, or no JSON: never a reason to stop
	}
	if err = e.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Println(e.Stats().Sent, "sent")
	// Output:
	// POST /v1/interactions Bearer evh_key
	// 1 sent
}

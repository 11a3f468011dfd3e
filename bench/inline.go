package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// inline measures what stands in line adds, in one run and in turns: the guard's door beside a handler that only reads, and
// the gateway, beside LiteLLM's proxy where its command is given, before a provider on loopback.
func inline(ctx context.Context, o options) error {
	provider := httptest.NewServer(http.HandlerFunc(provide))
	defer provider.Close()
	up, err := start(o.bin, o.settings("up", "--data-dir", o.dir, "--http", "127.0.0.1:0", "--set", "gateway.enabled=true", "--set", "gateway.base_url="+provider.URL+"/v1")...)
	if err != nil {
		return err
	}
	defer up.stop()
	if err := waitFor(ctx, "evenhand up", time.Minute, func() bool { _, ok := readEndpoints(o.dir); return ok }); err != nil {
		return fmt.Errorf("%w\n%s", err, up.log)
	}
	e, _ := readEndpoints(o.dir)

	prose := strings.Repeat("The committee met on Tuesday, read the three reports that had been asked for, and put the budget off until May. ", 18)
	guard := fmt.Sprintf(`{"response":%q,"domain":"hr","options":{"biasAction":"block","safetyFilter":true,"hitlGate":true}}`, prose)
	whole := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, prose[:500])
	stream := strings.TrimSuffix(whole, "}") + `,"stream":true}`
	sides := []*side{
		{name: "nothing", url: provider.URL + "/none", body: guard},
		{name: "guard", url: e.HTTP + "/v1/guard", body: guard, beside: "nothing"},
		{name: "provider", url: provider.URL + chatPath, body: whole},
		{name: "gateway", url: e.HTTP + chatPath, body: whole, beside: "provider"},
		{name: "provider, stream", url: provider.URL + chatPath, body: stream},
		{name: "gateway, stream", url: e.HTTP + chatPath, body: stream, beside: "provider, stream"},
	}
	if o.litellm != "" {
		url, stop, err := startLiteLLM(ctx, o, provider.URL)
		if err != nil {
			return err
		}
		defer stop()
		sides = append(sides, &side{name: "LiteLLM", url: url + chatPath, body: whole, beside: "provider"},
			&side{name: "LiteLLM, stream", url: url + chatPath, body: stream, beside: "provider, stream"})
	}
	if err := inTurns(ctx, sides, 4, 100, o.rate); err != nil { // to warm all of them up
		return err
	}
	for _, s := range sides {
		s.took = nil
	}
	if err := inTurns(ctx, sides, 4, o.n, o.rate); err != nil {
		return err
	}
	fmt.Printf("%d requests each, 4 connections, at most %d rounds a second\n", o.n, o.rate)
	for _, s := range sides {
		fmt.Printf("%-18s p50 %7v  p99 %7v", s.name, s.at(.5), s.at(.99))
		if i := slices.IndexFunc(sides, func(b *side) bool { return b.name == s.beside }); i >= 0 {
			fmt.Printf("  adds p50 %7v  p99 %7v", s.at(.5)-sides[i].at(.5), s.at(.99)-sides[i].at(.99))
		}
		fmt.Println()
	}
	return nil
}

const (
	chatPath = "/v1/chat/completions"
	benchKey = "sk-bench" // LiteLLM's proxy does not start without one
)

// side is one that is asked.
type side struct {
	name, url, body string
	beside          string // the side that shows what would be without it
	mu              sync.Mutex
	took            []time.Duration
}

func (s *side) at(share float64) time.Duration {
	slices.Sort(s.took)
	return s.took[int(share*float64(len(s.took)-1))].Round(time.Microsecond)
}

// inTurns asks every side n times in all, each connection one side behind the other. Connections ask evenly spaced,
// and another side begins each time: it pays for cores that slept.
func inTurns(ctx context.Context, sides []*side, connections, n, rate int) error {
	var wg sync.WaitGroup
	errs := make(chan error, connections)
	every := time.Duration(connections) * time.Second / time.Duration(rate)
	for at := range connections {
		wg.Go(func() {
			time.Sleep(every * time.Duration(at) / time.Duration(connections))
			c := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
			defer c.CloseIdleConnections()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for round := range n / connections {
				<-tick.C
				for i := range sides {
					s := sides[(round+i)%len(sides)]
					took, err := s.ask(ctx, c)
					if err != nil {
						errs <- err
						return
					}
					s.mu.Lock()
					s.took = append(s.took, took)
					s.mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

func (s *side) ask(ctx context.Context, c *http.Client) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(s.body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if strings.HasSuffix(s.url, chatPath) { // the provider's
		req.Header.Set("Authorization", "Bearer "+benchKey)
	}
	began := time.Now()
	res, err := c.Do(req)
	if err != nil {
		return 0, err
	}
	b, err := io.ReadAll(res.Body)
	_ = res.Body.Close()
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: %d %.200s", s.name, res.StatusCode, b)
	}
	return time.Since(began), nil
}

// provide answers as OpenAI does, at once: 1,000 characters, of a stream in 100 pieces.
func provide(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path == "/none" {
		_, _ = io.WriteString(w, "{}")
		return
	}
	const piece = "Paris is. "
	if !strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":200,"total_tokens":300}}`, strings.Repeat(piece, 100))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for range 100 {
		_, _ = fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", piece)
		_ = http.NewResponseController(w).Flush()
	}
	_, _ = io.WriteString(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// startLiteLLM runs LiteLLM's proxy before the provider, without any guard of its own.
func startLiteLLM(ctx context.Context, o options, provider string) (url string, stop func(), err error) {
	config, err := json.Marshal(map[string]any{"general_settings": map[string]any{"master_key": benchKey}, "model_list": []any{map[string]any{"model_name": "m", "litellm_params": map[string]any{"model": "openai/m", "api_base": provider + "/v1", "api_key": benchKey}}}})
	if err != nil {
		return "", nil, err
	}
	file := filepath.Join(o.dir, "litellm.yaml") // JSON is YAML
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	p, err := start(o.litellm, "--config", file, "--host", "127.0.0.1", "--port", fmt.Sprint(port), "--telemetry", "False")
	if err != nil {
		return "", nil, err
	}
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	err = pollEvery(ctx, time.Second, "LiteLLM's proxy", 3*time.Minute, func() bool {
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+"/health/liveliness", nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return false
		}
		_ = res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	if err != nil {
		p.stop()
		return "", nil, fmt.Errorf("%w\n%s", err, p.log)
	}
	return url, p.stop, nil
}

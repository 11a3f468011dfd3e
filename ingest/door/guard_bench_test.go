package door

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkGuardHTTP asks POST /v1/guard about 2 KB on four connections, 500 times a second together and evenly, and as
// often a handler that only reads its body, and shows both in microseconds and what the guard adds. Which of the two
// comes first, and pays for a core that sleeps, takes turns. Run it with a number of requests, as -benchtime 10000x.
func BenchmarkGuardHTTP(b *testing.B) {
	const connections, every = 4, 8 * time.Millisecond
	d := deps(&log{})
	inlined(b, &d)
	mux := http.NewServeMux()
	mux.Handle("/v1/guard", Handler(d))
	mux.HandleFunc("/none", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, "{}")
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	prose := strings.Repeat("The committee met on Tuesday, read the three reports that had been asked for, and put the budget off until May. ", 18)
	ask := func(c *http.Client, path, body string) (time.Duration, error) {
		began := time.Now()
		res, err := c.Post(server.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, err
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return 0, fmt.Errorf("%s: %d", path, res.StatusCode)
		}
		return time.Since(began), nil
	}
	var mu sync.Mutex
	var guarded, none []time.Duration
	var wg sync.WaitGroup
	b.ResetTimer()
	for at := range connections {
		wg.Go(func() {
			time.Sleep(every * time.Duration(at) / connections)
			c := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1, MaxIdleConnsPerHost: 1}}
			defer c.CloseIdleConnections()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for i := range b.N / connections {
				<-tick.C
				body := fmt.Sprintf(`{"response":"%s%d","domain":"hr","options":{"biasAction":"block","safetyFilter":true,"hitlGate":true}}`, prose, i)
				paths, took := []string{"/v1/guard", "/none"}, [2]time.Duration{}
				for turn := range paths {
					which := (turn + i) % len(paths)
					var err error
					if took[which], err = ask(c, paths[which], body); err != nil {
						b.Error(err)
						return
					}
				}
				mu.Lock()
				guarded, none = append(guarded, took[0]), append(none, took[1])
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	if len(guarded) == 0 {
		return
	}
	at := func(ds []time.Duration, share float64) float64 {
		slices.Sort(ds)
		return float64(ds[int(share*float64(len(ds)-1))].Nanoseconds()) / 1000
	}
	for _, share := range []float64{0.5, 0.99} {
		p := fmt.Sprintf("p%g", share*100)
		b.ReportMetric(at(none, share), "none-"+p+"-µs")
		b.ReportMetric(at(guarded, share), "guard-"+p+"-µs")
		b.ReportMetric(at(guarded, share)-at(none, share), "added-"+p+"-µs")
	}
}

// BenchmarkGuardHandler is the door without the network.
func BenchmarkGuardHandler(b *testing.B) {
	d := deps(&log{})
	inlined(b, &d)
	h := Handler(d)
	prose := strings.Repeat("The committee met on Tuesday, read the three reports that had been asked for, and put the budget off until May. ", 18)
	body := `{"response":"` + prose + `","domain":"hr","options":{"biasAction":"block","safetyFilter":true,"hitlGate":true}}`
	b.ReportAllocs()
	for b.Loop() {
		if w := send(h, http.MethodPost, "/v1/guard", body); w.Code != http.StatusOK {
			b.Fatal(w.Body)
		}
	}
}

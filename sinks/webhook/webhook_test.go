package webhook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/trackertest"
	"github.com/evenhand/evenhand/sinks/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "0123456789abcdef"

// receiver is the other side: it checks signatures and keeps each delivery once.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex
	said    []audit.ID
	tickets []sinks.Ticket
	lose    int
	status  []int // of the next answers
	retry   string
	faults  []error
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(r.take))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) take(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(q.Body)
	if err == nil {
		err = r.check(q, body)
	}
	if err != nil {
		r.faults = append(r.faults, err)
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	if len(r.status) > 0 {
		w.Header().Set("Retry-After", r.retry)
		w.WriteHeader(r.status[0])
		r.status = r.status[1:]
		return
	}
	var k sinks.Ticket
	if err := json.Unmarshal(body, &k); err != nil || k.Body == "" && k.Action == sinks.OpenIssue {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	known := false
	for _, id := range r.said {
		known = known || id == k.ID
	}
	r.tickets = append(r.tickets, k)
	if !known && (k.Action == sinks.OpenIssue || k.Action == sinks.Comment) {
		r.said = append(r.said, k.ID)
	}
	if r.lose > 0 {
		r.lose--
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
		return
	}
	fmt.Fprintf(w, `{"id":"remote-%s","key":"T-1","url":"https://tracker.example.com/T-1"}`, k.ID)
}

func (r *receiver) check(q *http.Request, body []byte) error {
	sig := q.Header.Get(webhook.HeaderSignature)
	at, _, _ := strings.Cut(strings.TrimPrefix(sig, "t="), ",")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Minute {
		return errors.New("an old request")
	}
	if sig != webhook.Sign(secret, time.Unix(seconds, 0), body) {
		return errors.New("a wrong signature")
	}
	if q.Header.Get(webhook.HeaderDelivery) == "" || q.Header.Get(webhook.HeaderEvent) == "" {
		return errors.New("no delivery")
	}
	return nil
}

func open(t *testing.T, url string, allow ...string) *webhook.Tracker {
	t.Helper()
	c := webhook.DefaultConfig()
	c.URL, c.Secret, c.Allow, c.Timeout = url, secret, allow, 2*time.Second
	tr, err := webhook.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func TestContract(t *testing.T) {
	trackertest.Run(t, func(t *testing.T) *trackertest.Bench {
		r := newReceiver(t)
		set := func(f func()) {
			r.mu.Lock()
			defer r.mu.Unlock()
			f()
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
		return &trackertest.Bench{
			Tracker: open(t, r.URL, "127.0.0.0/8"),
			Absent:  open(t, "http://"+l.Addr().String(), "127.0.0.0/8"),
			Said: func(t *testing.T) (out []audit.ID) {
				set(func() { out = append(out, r.said...) })
				for _, err := range r.faults {
					t.Error(err)
				}
				return out
			},
			LoseAnswers: func(_ *testing.T, n int) { set(func() { r.lose = n }) },
			Break: func(_ *testing.T, n int) {
				set(func() {
					for range n {
						r.status = append(r.status, http.StatusInternalServerError)
					}
				})
			},
			Busy: func(*testing.T) { set(func() { r.status, r.retry = []int{http.StatusTooManyRequests}, "30" }) },
			Refuse: func(*testing.T) *sinks.Ticket {
				k := trackertest.Issue("no body")
				k.Body = ""
				return k
			},
		}
	})
}

// The receiver gets the ticket as it is, and what it calls it comes back.
func TestDelivery(t *testing.T) {
	r := newReceiver(t)
	issue := trackertest.Issue("a")
	got, err := open(t, r.URL, "127.0.0.0/8").Send(t.Context(), issue)
	if err != nil || got.Key != "T-1" || got.RemoteID != "remote-"+issue.ID.String() {
		t.Fatalf("%+v %v", got, err)
	}
	if k := r.tickets[0]; k.Title != issue.Title || k.Tenant != "acme" || k.Due != issue.Due || k.Breach != issue.Breach {
		t.Errorf("%+v", k)
	}
}

// Whatever a name or a redirect leads to, special networks are not reached unless they are allowed.
func TestDoesNotReachInside(t *testing.T) {
	r := newReceiver(t)
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"https://127.0.0.1:" + port, "https://localhost:" + port, "https://169.254.169.254/latest/meta-data", "https://10.0.0.1", "https://192.168.1.1",
		"https://[::1]:" + port, "https://[::ffff:127.0.0.1]:" + port, "https://0.0.0.0:" + port, "https://[fd00::1]", "https://2130706433:" + port,
	} {
		_, err := open(t, url).Send(t.Context(), trackertest.Issue("a"))
		if audit.KindOf(err) != audit.KindUnavailable {
			t.Errorf("%s: %v", url, err)
		}
	}
	// In the clear only where it is allowed, though the name could be public.
	if _, err := open(t, r.URL, "10.0.0.0/8").Send(t.Context(), trackertest.Issue("a")); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("%v", err)
	}
	if len(r.tickets) != 0 {
		t.Errorf("%d requests arrived", len(r.tickets))
	}
	other := newReceiver(t)
	redirect := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer redirect.Close()
	if _, err := open(t, redirect.URL, "127.0.0.0/8").Send(t.Context(), trackertest.Issue("a")); audit.KindOf(err) != audit.KindUnavailable || len(other.tickets) != 0 {
		t.Errorf("a redirect: %v, %d requests", err, len(other.tickets))
	}
}

// An answer without end is not read to its end, one that names nothing is as good as any.
func TestAnswers(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"endless": func(w http.ResponseWriter, _ *http.Request) {
			for range 1 << 10 {
				if _, err := w.Write(make([]byte, 4<<10)); err != nil {
					return
				}
			}
		},
		"no JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "OK") },
		"409":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusConflict) },
		"204":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
	} {
		s := httptest.NewServer(h)
		r, err := open(t, s.URL, "127.0.0.0/8").Send(t.Context(), trackertest.Issue("a"))
		if err != nil || r != (sinks.Receipt{}) {
			t.Errorf("%s: %+v %v", name, r, err)
		}
		s.Close()
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	err := webhook.Config{URL: "ftp://x", Secret: "short", Allow: []string{"here"}}.Validate()
	for _, key := range []string{"webhook.url", "webhook.secret", "webhook.timeout", "webhook.allow"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not in %v", key, err)
		}
	}
	c := webhook.DefaultConfig()
	c.URL, c.Secret = "http://hooks.example.com/x", secret
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "https") {
		t.Errorf("%v", err)
	}
}

// What a receiver checks: the secret, the body, and a time within the window.
func TestVerify(t *testing.T) {
	now, body := time.Unix(1_795_338_000, 0), []byte(`{"a":1}`)
	good := webhook.Sign(secret, now, body)
	for _, tc := range []struct {
		name, secret, header, body string
		at                         time.Time
		want                       string // in the error; "" for none
	}{
		{"as it was sent", secret, good, `{"a":1}`, now, ""},
		{"at the end of the window", secret, good, `{"a":1}`, now.Add(webhook.Window), ""},
		{"from the near future", secret, good, `{"a":1}`, now.Add(-time.Minute), ""},
		{"sent again later", secret, good, `{"a":1}`, now.Add(webhook.Window + time.Second), "at most"},
		{"dated ahead", secret, good, `{"a":1}`, now.Add(-webhook.Window - time.Second), "at most"},
		{"another body", secret, good, `{"a":2}`, now, "another body"},
		{"another secret", "fedcba9876543210", good, `{"a":1}`, now, "another body"},
		{"another time", secret, strings.Replace(good, "1795338000", "1795338001", 1), `{"a":1}`, now, "another body"},
		{"none", secret, "", `{"a":1}`, now, "t=SECONDS"},
		{"half of it", secret, "t=1795338000", `{"a":1}`, now, "t=SECONDS"},
		{"an empty signature", secret, "t=1795338000,v1=", `{"a":1}`, now, "another body"},
		{"a plus before the time", secret, strings.Replace(good, "t=", "t=+", 1), `{"a":1}`, now, "another body"},
	} {
		if err := webhook.Verify(tc.secret, tc.header, []byte(tc.body), tc.at); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

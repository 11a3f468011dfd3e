package graph

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/auth/authtest"
	"github.com/evenhand/evenhand/store"
)

// board is a store of flagged rows with the clock of the bubble; a row appears some time after it was written.
type board struct {
	mu    sync.Mutex
	rows  map[string][]written
	err   error
	reads int
}

type written struct {
	item     store.Item
	at, seen time.Time
}

func (b *board) write(tenant string, appears time.Duration, items ...store.Item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil {
		b.rows = map[string][]written{}
	}
	for _, it := range items {
		it.Tenant = tenant
		b.rows[tenant] = append(b.rows[tenant], written{it, time.Now(), time.Now().Add(appears)})
	}
}

// read is what store.FlaggedSince promises.
func (b *board) read(_ context.Context, tenant string, from time.Time, limit int) ([]store.Item, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	through := time.Now().Add(-time.Second)
	if b.err != nil || from.IsZero() {
		return nil, through, b.err
	}
	var found []written
	for _, w := range b.rows[tenant] {
		if w.at.After(from) && !w.at.After(through) && !w.seen.After(time.Now()) {
			found = append(found, w)
		}
	}
	slices.SortStableFunc(found, func(a, b written) int { return a.at.Compare(b.at) })
	for len(found) > limit {
		if found[len(found)-1].at.Equal(found[limit-1].at) {
			break // those of one instant come together
		}
		through = found[limit-1].at
		found = slices.DeleteFunc(found, func(w written) bool { return w.at.After(through) })
		limit = len(found)
	}
	items := make([]store.Item, len(found))
	for i, w := range found {
		items[i] = w.item
	}
	return items, through, nil
}

func flaggedItem(name string, d audit.Domain, severity uint8) store.Item {
	return store.Item{EventID: audit.DeriveID(name), Model: name, Domain: d, MaxSeverity: severity, Flagged: true, Time: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
}

// heard are the models of what a subscription got so far.
func heard(s *flagged) (names []string) {
	for {
		select {
		case it, more := <-s.items:
			if !more {
				return append(names, "ended: "+s.why.Message)
			}
			names = append(names, it.Model)
		default:
			return names
		}
	}
}

func subscribe(t *testing.T, f *Feed, tenant string, d audit.Domain, least uint8) *flagged {
	t.Helper()
	s, err := f.subscribe(t.Context(), tenant, d, least)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		f := NewFeed(b.read, DefaultConfig(), nil)
		defer f.Close()
		b.write("a", 0, flaggedItem("before", audit.HR, 4))
		time.Sleep(2 * time.Second)
		all, hr, severe, other := subscribe(t, f, "a", "", 0), subscribe(t, f, "a", audit.HR, 0), subscribe(t, f, "a", "", 4), subscribe(t, f, "b", "", 0)
		// The second appears after rows that bear a later time.
		b.write("a", 0, flaggedItem("one", audit.HR, 2))
		b.write("a", 5*time.Second, flaggedItem("late", audit.Finance, 4))
		time.Sleep(time.Second)
		b.write("a", 0, flaggedItem("two", audit.General, 1))
		time.Sleep(20 * time.Second)
		changed := flaggedItem("one", audit.HR, 2)
		changed.HumanReviewed = true
		b.write("a", 0, changed, flaggedItem("two", audit.General, 1)) // the second is written anew without a change
		time.Sleep(20 * time.Second)
		if got := fmt.Sprint(heard(all)); got != "[one two late one two]" && got != "[one two late two one]" {
			t.Errorf("all: %s", got)
		}
		if got := fmt.Sprint(heard(hr)); got != "[one one]" {
			t.Errorf("hr: %s", got)
		}
		if got := fmt.Sprint(heard(severe)); got != "[late]" {
			t.Errorf("severe: %s", got)
		}
		if got := heard(other); len(got) != 0 {
			t.Errorf("another tenant: %s", got)
		}
		for _, s := range []*flagged{all, hr, severe, other, other} {
			s.leave()
		}
		synctest.Wait()
		if len(f.tenants) != 0 || f.open != 0 {
			t.Errorf("%d pollers, %d streams are left", len(f.tenants), f.open)
		}
	})
}

// TestFeedMissesNothing: whatever appears when, everything is told once.
func TestFeedMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		c := DefaultConfig()
		c.StreamBuffer = 10_000
		f := NewFeed(b.read, c, nil)
		defer f.Close()
		s := subscribe(t, f, "a", "", 0)
		var want []string
		for i := range 3000 {
			name := fmt.Sprintf("n%04d", i)
			want = append(want, name)
			b.write("a", time.Duration(i*7919%9000)*time.Millisecond, flaggedItem(name, audit.HR, 1))
			if i%40 == 0 {
				time.Sleep(time.Duration(i%1300) * time.Millisecond)
			}
			if i == 1500 {
				b.mu.Lock()
				b.err = audit.E("test", audit.KindUnavailable, errors.New("away"))
				b.mu.Unlock()
				time.Sleep(failing / 2)
				b.mu.Lock()
				b.err = nil
				b.mu.Unlock()
			}
		}
		time.Sleep(time.Minute)
		got := heard(s)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("%d told, %d written", len(got), len(want))
		}
	})
}

func TestFeedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{}
		c := DefaultConfig()
		c.Subscribers, c.ServedAtOnce, c.StreamBuffer = 2, 3, 5
		f := NewFeed(b.read, c, nil)
		slow, second := subscribe(t, f, "a", "", 0), subscribe(t, f, "a", "", 0)
		if _, err := f.subscribe(t.Context(), "a", "", 0); err == nil || !strings.Contains(err.Error(), "graphql.subscribers") {
			t.Errorf("a third stream of a tenant: %v", err)
		}
		third := subscribe(t, f, "b", "", 0)
		if _, err := f.subscribe(t.Context(), "c", "", 0); err == nil {
			t.Error("a fourth stream of all")
		}
		third.leave()
		for i := range 6 {
			b.write("a", 0, flaggedItem(fmt.Sprint(i), audit.HR, 1))
			time.Sleep(3 * time.Second)
			heard(second)
		}
		if got := heard(slow); len(got) != 6 || !strings.Contains(got[5], "too slow") {
			t.Errorf("%s", got)
		}
		// A store that does not come back ends the streams, and says so.
		b.mu.Lock()
		b.err = audit.E("test", audit.KindUnavailable, errors.New("away"))
		b.mu.Unlock()
		if time.Sleep(failing - 3*time.Second); len(heard(second)) != 0 {
			t.Error("ended too early")
		}
		time.Sleep(10 * time.Second)
		if got := heard(second); len(got) != 1 || !strings.Contains(got[0], "does not answer") {
			t.Errorf("%s", got)
		}
		if _, err := f.subscribe(t.Context(), "a", "", 0); audit.KindOf(err) != audit.KindUnavailable {
			t.Errorf("%v", err)
		}
		b.mu.Lock()
		b.err = nil
		b.mu.Unlock()
		last := subscribe(t, f, "a", "", 0)
		f.Close()
		if got := heard(last); len(got) != 1 || !strings.Contains(got[0], "going down") {
			t.Errorf("%s", got)
		}
		if _, err := f.subscribe(t.Context(), "a", "", 0); err == nil {
			t.Error("a stream of a feed that is closed")
		}
	})
}

// events is a stream's text; it is asked line by line.
type events struct {
	*bufio.Scanner
	close func()
}

// open posts an operation with Accept: text/event-stream to a real server, as an administrator of a.
func open(t *testing.T, url, body string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	sc := bufio.NewScanner(res.Body)
	end := func() { cancel(); _ = res.Body.Close() }
	t.Cleanup(end)
	return &events{sc, end}
}

// next gives the next line that is not empty.
func (e *events) next() string {
	for e.Scan() {
		if e.Text() != "" {
			return e.Text()
		}
	}
	return "end"
}

func TestStream(t *testing.T) {
	b := &board{}
	c := DefaultConfig()
	c.KeepAlive, c.StreamPoll = 20*time.Millisecond, 5*time.Millisecond
	feed := NewFeed(b.read, c, nil)
	defer feed.Close()
	serve := func(t *testing.T, c Config) (*edge, *httptest.Server) {
		e := newEdge(c, Parts{Store: store.New(nil, "none"), Feed: feed})
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e.ServeHTTP(w, r.WithContext(auth.With(r.Context(), principal("a", auth.Viewer))))
		}))
		t.Cleanup(srv.Close)
		return e, srv
	}
	e, srv := serve(t, c)
	t.Run("a query", func(t *testing.T) {
		s := open(t, srv.URL, `{"query":"{viewer{tenantId}}"}`)
		for _, want := range []string{":", "event: next", `data: {"data":{"viewer":{"tenantId":"a"}}}`, "event: complete", "data:", "end"} {
			if got := s.next(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	})
	t.Run("a refusal", func(t *testing.T) {
		s := open(t, srv.URL, `{"query":"{nothing}"}`)
		s.next()
		if s.next(); !strings.Contains(s.next(), `"code":"BAD_USER_INPUT"`) || s.next() != "event: complete" {
			t.Error("a refused operation is told in a result, and ends")
		}
	})
	t.Run("an unknown domain", func(t *testing.T) {
		s := open(t, srv.URL, `{"query":"subscription{flagged(domain:\"space\"){id}}"}`)
		s.next()
		if s.next(); !strings.Contains(s.next(), `"code":"BAD_USER_INPUT"`) || s.next() != "event: complete" {
			t.Error("a resolver's refusal is told in a result, and ends")
		}
	})
	t.Run("interactions, signs of life and the end", func(t *testing.T) {
		s := open(t, srv.URL, `{"query":"subscription($d:String){flagged(domain:$d,minSeverity:HIGH){llmModel severity originalQuery userEmail textState}}","variables":{"d":"hr"}}`)
		s.next()
		if got := s.next(); got != ":" {
			t.Errorf("%s instead of a sign of life", got)
		}
		b.write("a", 0, flaggedItem("low", audit.HR, 1), flaggedItem("one", audit.HR, 3), flaggedItem("two", audit.HR, 4))
		for _, want := range []string{"event: next", `data: {"data":{"flagged":{"llmModel":"one","severity":"HIGH","originalQuery":"[masked]","userEmail":null,"textState":"masked"}}}`, "event: next", `data: {"data":{"flagged":{"llmModel":"two","severity":"CRITICAL","originalQuery":"[masked]","userEmail":null,"textState":"masked"}}}`} {
			got := s.next()
			for got == ":" {
				got = s.next()
			}
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		e.Drain()
		got := s.next()
		for got == ":" {
			got = s.next()
		}
		if got != "event: next" || !strings.Contains(s.next(), `"code":"UNAVAILABLE"`) || s.next() != "event: complete" || s.next() != "data:" || s.next() != "end" {
			t.Error("the end is not told")
		}
	})
	t.Run("a client that leaves", func(t *testing.T) {
		await(t, feed, 0) // a stream that ended is counted until its resolver has heard of it
		_, srv := serve(t, c)
		s := open(t, srv.URL, `{"query":"subscription{flagged{id}}"}`)
		await(t, feed, 1)
		s.close()
		await(t, feed, 0)
	})
	t.Run("the end of its time", func(t *testing.T) {
		c := c
		c.StreamMax = 30 * time.Millisecond
		_, srv := serve(t, c)
		s := open(t, srv.URL, `{"query":"subscription{flagged{id}}"}`)
		var last []string
		for got := s.next(); got != "end"; got = s.next() {
			if got != ":" {
				last = append(last, got)
			}
		}
		if len(last) != 4 || !strings.Contains(last[1], "subscribe again") || last[2] != "event: complete" {
			t.Errorf("%s", last)
		}
	})
}

// A stream ends with its credential: nothing that is flagged later is told, and the code is a new request's.
func TestStreamEndsWithItsCredential(t *testing.T) {
	dev, err := auth.MakeDevKey(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		key, rawKey, err := auth.NewAPIKey("a", "reader", []auth.Permission{auth.Read, auth.ReadTexts}, "ann", time.Now(), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		token, err := dev.Sign("a", "ann", []auth.Role{auth.Reviewer}, 10*time.Minute, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		keys := &authtest.Keyring{}
		keys.Hold(key)
		a, err := auth.New(t.Context(), auth.Config{Keys: keys, KeyHold: time.Hour, Dev: dev, DefaultTenant: "a"}, auth.Options{Client: &http.Client{}})
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		b := &board{}
		feed := NewFeed(b.read, DefaultConfig(), nil)
		defer feed.Close()
		h := a.Middleware(auth.Read, Refused, newEdge(DefaultConfig(), Parts{Store: store.New(nil, "none"), Feed: feed}))
		// follow gives a stream's text once it has ended.
		follow := func(credential string) <-chan string {
			r := httptest.NewRequest("POST", "http://localhost"+Path, strings.NewReader(`{"query":"subscription{flagged{llmModel}}"}`))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "text/event-stream")
			if credential != "" {
				r.Header.Set("Authorization", "Bearer "+credential)
			}
			text := make(chan string, 1)
			go func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				text <- w.Body.String()
			}()
			return text
		}
		byKey, byToken, byNobody := follow(rawKey.Reveal()), follow(token), follow("")
		time.Sleep(time.Minute)
		b.write("a", 0, flaggedItem("before", audit.HR, 4))
		time.Sleep(time.Minute)
		keys.Revoke(time.Now())
		time.Sleep(10 * time.Second)
		b.write("a", 0, flaggedItem("after the key", audit.HR, 4))
		time.Sleep(9 * time.Minute) // the token's ten minutes and the one that clocks may differ by
		b.write("a", 0, flaggedItem("after the token", audit.HR, 4))
		for _, tc := range []struct {
			name, ends, tells, lacks string
			text                     <-chan string
		}{
			{"a key", `"code":"UNAUTHENTICATED","reason":"key_revoked"`, `"before"`, "after the key", byKey},
			{"a token", `"code":"UNAUTHENTICATED","reason":"token_expired"`, `"after the key"`, "after the token", byToken},
			{"nobody", `"code":"UNAVAILABLE"`, `"after the token"`, "UNAUTHENTICATED", byNobody}, // graphql.stream_max
		} {
			got := <-tc.text
			if !strings.Contains(got, tc.ends) || !strings.HasSuffix(got, "event: complete\ndata:\n\n") || !strings.Contains(got, tc.tells) || strings.Contains(got, tc.lacks) {
				t.Errorf("%s: %s", tc.name, got)
			}
		}
	})
}

// await waits until n streams are open.
func await(t *testing.T, f *Feed, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); streams(f) != n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d streams, not %d", streams(f), n)
		}
	}
}

func streams(f *Feed) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.open
}

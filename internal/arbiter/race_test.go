package arbiter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/arbiter/arbitertest"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/brokertest"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/store/migrate/migratetest"
)

// racerEnv makes the test binary a racer: its value is a race as JSON.
const racerEnv = "EVENHAND_TEST_RACER"

type race struct {
	Brokers             []string
	Topic, Name         string
	Once, Alarms        int // numbers of keys
	CH, User, Pass, DB  string
	Seed                uint64
	WithStore, Projects bool
	Doomed              bool // it is killed: having said all it waits for that
}

// verdict is what a racer was told.
type verdict struct {
	Key      string
	Seq      uint32
	Proposal string
	Value    string
}

// racer decides all keys in an order of its own and prints what it was told, a line each.
func racer() int {
	var r race
	if err := json.Unmarshal([]byte(os.Getenv(racerEnv)), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func (r *race) run(ctx context.Context) error {
	conn := kafkaconn.DefaultConfig()
	conn.Brokers = r.Brokers
	opt := arbiter.Options{Topic: r.Topic, Proposer: r.Name, Rules: arbitertest.Rules()}
	if r.WithStore {
		cfg := chconn.DefaultConfig()
		cfg.Addr, cfg.Username, cfg.Password = []string{r.CH}, r.User, r.Pass // the engine signs in to evenhand only
		ch, err := chconn.Open(cfg)
		if err != nil {
			return err
		}
		defer func() { _ = ch.Close() }()
		opt.Store = arbiter.NewStore(ch, r.DB)
	}
	a, err := arbiter.Open(ctx, conn, opt)
	if err != nil {
		return err
	}
	if r.Projects {
		go func() { _ = a.Project(ctx) }() // ends with the process
	}
	keys := make([]arbiter.Key, 0, r.Once+r.Alarms)
	for i := range r.Once {
		keys = append(keys, arbiter.Key{Kind: "once", ID: fmt.Sprint(i)})
	}
	for i := range r.Alarms {
		keys = append(keys, arbiter.Key{Kind: "alarm", ID: fmt.Sprint(i)})
	}
	rnd := rand.New(rand.NewPCG(r.Seed, 1))
	// All go the same way but for a jitter, so that they meet at the keys.
	for i := range keys {
		j := min(i+rnd.IntN(4), len(keys)-1)
		keys[i], keys[j] = keys[j], keys[i]
	}
	out := json.NewEncoder(os.Stdout)
	for _, k := range keys {
		steps := []string{"done"}
		if k.Kind == "alarm" {
			steps = []string{"open", "ticketed", "resolved"}
		}
		for i, state := range steps {
			d, err := a.Propose(ctx, arbiter.Proposal{Key: k, Seq: uint32(i + 1), Value: json.RawMessage(fmt.Sprintf(`{"state":%q,"by":%q}`, state, r.Name))})
			if err != nil {
				return fmt.Errorf("%s %d: %w", k, i+1, err)
			}
			if err := out.Encode(verdict{k.String(), d.Seq, d.Proposal.String(), string(d.Value)}); err != nil {
				return err
			}
		}
	}
	if r.Doomed {
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed, or nobody is left who could
	}
	return a.Close(ctx)
}

// told gathers what racers were told and complains when two were told differently.
type told struct {
	mu    sync.Mutex
	first map[string]verdict
	lines int
}

func (h *told) add(t *testing.T, by string, v verdict) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines++
	id := fmt.Sprint(v.Key, "#", v.Seq)
	was, ok := h.first[id]
	if !ok {
		h.first[id] = v
	} else if was != v {
		t.Errorf("%s: %s was told %s, others %s", id, by, v.Proposal, was.Proposal)
	}
}

// run starts the racer and reads what it says, until it ends or, when lives is not negative, it has
// said so many lines: then it is killed.
func (h *told) run(t *testing.T, r race, lives int) (killed bool) {
	r.Doomed = lives >= 0
	env, err := json.Marshal(r)
	if err != nil {
		t.Error(err)
		return false
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), racerEnv+"="+string(env))
	cmd.Stderr = os.Stderr
	alive, err := cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = alive.Close() }()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return false
	}
	var dead atomic.Bool
	kill := func() {
		dead.Store(true)
		_ = cmd.Process.Kill()
	}
	said := 0
	if lives == 0 { // somewhere in its start
		time.AfterFunc(time.Duration(rand.IntN(400))*time.Millisecond, kill)
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadBytes('\n')
		var v verdict
		if err != nil || json.Unmarshal(line, &v) != nil {
			break // the last line may be cut
		}
		h.add(t, r.Name, v)
		if said++; said == lives {
			time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, kill) // somewhere in the next proposals
		}
	}
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if err != nil && !dead.Load() {
		t.Errorf("%s: %v", r.Name, err)
	}
	return err != nil && dead.Load()
}

// 16 processes race for the same keys; each is killed again and again at random points and started
// anew, half of them start from the projection and write it. Everybody who was told a winner, before
// or after a kill, was told the same one.
func TestSixteenProcessesAndKills(t *testing.T) {
	keys, deaths := 250, 5
	if testing.Short() { // under the race detector, which slows the broker in this process most
		keys, deaths = 40, 1
	}
	sixteen(t, brokertest.Start(t), keys, deaths)
}

// The same on a real broker, which is killed twice meanwhile: acknowledgements are lost for good.
func TestSixteenProcessesAndABrokerThatDies(t *testing.T) {
	if testing.Short() {
		t.Skip("runs without -short")
	}
	k := brokertest.StartKafka(t)
	conn := k.Conn
	if _, err := kafkaconn.Ensure(t.Context(), conn, kafkaconn.Topics(1), 1); err != nil {
		t.Fatal(err)
	}
	reader := open(t, conn, arbiter.Options{})
	defer shut(t, reader)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, n := range []uint64{20, 120} { // decisions: in the middle of the race
			for d, err := range reader.Watch(t.Context(), n) {
				if err != nil || d.N < n {
					t.Error(err)
				}
				break
			}
			k.Call("kill")
			k.Call("start")
		}
	}()
	sixteen(t, conn, 120, 1)
	<-done
	if err := reader.Err(); err != nil {
		t.Errorf("a follower through both kills: %v", err)
	}
}

// sixteen runs the race for so many keys; each process is killed deaths times.
func sixteen(t *testing.T, conn kafkaconn.Config, keys, deaths int) {
	t.Helper()
	const racers = 16
	cfg, store := migrated(t)
	ch := enginetest.Shared(t).Endpoint(engine.Writer)
	h := &told{first: map[string]verdict{}}
	var kills atomic.Int64
	var wg sync.WaitGroup
	base := race{Brokers: conn.Brokers, Topic: kafkaconn.Decisions, Once: keys * 3 / 4, Alarms: keys / 4, CH: ch.Native, User: string(ch.User), Pass: ch.Password, DB: cfg.Database}
	for i := range racers {
		wg.Go(func() {
			for life := 0; life <= deaths; life++ {
				r := base
				r.Name, r.Seed = fmt.Sprintf("racer %d life %d", i, life), rand.Uint64()
				r.WithStore, r.Projects = i%2 == 0, i%4 == 0
				lives := -1
				if life < deaths {
					lives = rand.IntN(min(keys+50, base.Once+3*base.Alarms)) // before it has said all
				}
				if h.run(t, r, lives) {
					kills.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if want := base.Once + 3*base.Alarms; len(h.first) != want {
		t.Errorf("%d decisions were told, want %d", len(h.first), want)
	}
	if got, want := kills.Load(), int64(racers*deaths); got != want {
		t.Errorf("%d kills, want %d", got, want)
	}

	// Later readers, with and without the projection, say the same.
	for _, opt := range []arbiter.Options{{}, {Store: store}} {
		a := open(t, conn, opt)
		for _, v := range h.first {
			k, err := arbiter.ParseKey(v.Key)
			if err != nil {
				t.Fatal(err)
			}
			list, err := a.History(t.Context(), k)
			if err != nil || len(list) < int(v.Seq) || list[v.Seq-1].Proposal.String() != v.Proposal || string(list[v.Seq-1].Value) != v.Value {
				t.Errorf("%s %d: a later reader says otherwise (%v)", v.Key, v.Seq, err)
			}
		}
		if opt.Store != nil {
			projectAll(t, a, store)
		}
		shut(t, a)
	}
	rep := verify(t, conn, store)
	if !rep.OK() || rep.Behind != 0 || rep.Decisions != uint64(len(h.first)) || rep.Projected != rep.Decisions {
		t.Errorf("%+v", rep)
	}
	proposers := map[string]int{}
	for _, v := range h.first {
		var who struct{ By string }
		if err := json.Unmarshal([]byte(v.Value), &who); err != nil {
			t.Error(err)
		}
		proposers[who.By]++
	}
	t.Logf("%d kills, %d answers, %d decisions won by %d lives, %d proposals came late", kills.Load(), h.lines, len(h.first), len(proposers), rep.Late)
}

// projectAll projects until nothing is left.
func projectAll(t testing.TB, a *arbiter.Kafka, s *arbiter.Store) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Project(ctx) }()
	var want uint64
	first, cancelFirst := context.WithTimeout(t.Context(), 300*time.Millisecond)
	for d := range a.Watch(first, 0) { // what is there
		want = d.N
	}
	cancelFirst()
	eventually(t, func() error {
		n, err := s.Count(t.Context())
		if err == nil && n < want {
			err = fmt.Errorf("%d of %d are projected", n, want)
		}
		return err
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func eventually(t testing.TB, f func() error) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func verify(t testing.TB, conn kafkaconn.Config, s *arbiter.Store) *arbiter.Report {
	t.Helper()
	rep, err := arbiter.Verify(t.Context(), conn, arbiter.Options{Rules: arbitertest.Rules(), Store: s})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// migrated is a database of the test's own with the table, and the store on it.
func migrated(t testing.TB) (chconn.Config, *arbiter.Store) {
	t.Helper()
	cfg := enginetest.Database(t)
	conn := enginetest.Conn(t, cfg)
	migratetest.Run(t, cfg)
	return cfg, arbiter.NewStore(conn, cfg.Database)
}

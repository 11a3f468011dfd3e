package gates_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gates"
	"github.com/evenhand/evenhand/internal/arbiter"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/internal/embedded/enginetest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// racerEnv makes the test binary a process that answers gates: its value is a race as JSON.
const racerEnv = "EVENHAND_TEST_RACER"

type race struct {
	Brokers            []string
	CH, User, Pass, DB string
	Tenant, Name       string
}

// deciders of a process: two approve, one denies, one waits for the timeout.
const deciders = 4

// heard is what a decider was told.
type heard struct {
	Gate audit.ID
	gates.Decision
}

func racer() int {
	var r race
	if err := json.Unmarshal([]byte(os.Getenv(racerEnv)), &r); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := r.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, r.Name, err)
		return 1
	}
	return 0
}

// run answers the gates whose ids come in, a line each, and prints what it was told.
func (r *race) run(ctx context.Context) error {
	cfg := chconn.DefaultConfig()
	cfg.Addr, cfg.Username, cfg.Password = []string{r.CH}, r.User, r.Pass // the engine signs in to evenhand only
	conn, err := chconn.Open(cfg)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	rules, err := arbiter.NewRules(arbiter.Once(gates.Kind))
	if err != nil {
		return err
	}
	k := kafkaconn.DefaultConfig()
	k.Brokers = r.Brokers
	log, err := arbiter.Open(ctx, k, arbiter.Options{Proposer: r.Name, Rules: rules})
	if err != nil {
		return err
	}
	s, err := gates.New(asking(), gates.Parts{Store: store.New(conn, r.DB), Rows: clickhouse.New(conn, r.DB, clickhouse.Options{}), Log: log})
	if err != nil {
		return err
	}
	go s.Run(ctx) // ends with the process
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		id, err := audit.ParseID(lines.Text())
		if err != nil {
			return err
		}
		var g errgroup.Group
		for i := range deciders {
			g.Go(func() error {
				if i < deciders-1 {
					by := fmt.Sprintf("%s-%d", r.Name, i)
					if _, _, err := s.Decide(ctx, id, approver(r.Tenant, by), gates.Answer{Approve: i != 0, Note: "by " + by}); err != nil {
						return err
					}
				}
				d, err := s.Wait(ctx, id)
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				return out.Encode(heard{id, d})
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// told gathers what deciders heard and complains when two heard differently.
type told struct {
	mu    sync.Mutex
	first map[audit.ID]string
	lines int
}

func (h *told) add(t *testing.T, by string, v heard) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines++
	said := text(t, v)
	if was, ok := h.first[v.Gate]; !ok {
		h.first[v.Gate] = said
	} else if was != said {
		t.Errorf("%s heard %s, others %s", by, said, was)
	}
}

// run has a racer answer the gates, until it is through or, when lives is not negative, it has said so many
// lines: then it is killed.
func (h *told) run(t *testing.T, r race, ids []audit.ID, lives int) (killed bool) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), racerEnv+"="+text(t, r))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err = errors.Join(err, err2); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return false
	}
	for _, id := range ids { // fits into the pipe
		_, _ = io.WriteString(in, id.String()+"\n")
	}
	_ = in.Close()
	var dead atomic.Bool
	said := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var v heard
		if json.Unmarshal(lines.Bytes(), &v) != nil {
			break // the last line may be cut
		}
		h.add(t, r.Name, v)
		if said++; said == lives {
			time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { // somewhere in the next answers
				dead.Store(true)
				_ = cmd.Process.Kill()
			})
		}
	}
	err = cmd.Wait()
	if err != nil && !dead.Load() {
		t.Errorf("%s: %v", r.Name, err)
	}
	return err != nil && dead.Load()
}

// 16 deciders in four processes approve and deny the same gates and wait for their deadlines, of which half
// come in the middle of it; each process is killed and started anew. Every gate has one answer, and
// everybody heard it.
func sixteenDeciders(t *testing.T, w *world) {
	const processes, n = 4, 12
	opener := w.start(asking(), nil)
	ch := enginetest.Shared(t).Endpoint(engine.Writer)
	base := race{Brokers: w.kafka.Brokers, CH: ch.Native, User: string(ch.User), Pass: ch.Password, DB: w.db, Tenant: w.tenant}
	var ids []audit.ID
	for i := range n {
		r := w.transfer()
		r.Timeout = 5 * time.Minute
		if i%2 == 0 { // while processes start, answer and are killed
			r.Timeout = time.Duration(200+i*150) * time.Millisecond
		}
		ids = append(ids, w.open(opener, r))
	}
	h := &told{first: map[audit.ID]string{}}
	var kills atomic.Int64
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			for life := range 2 {
				r, lives := base, -1
				r.Name = fmt.Sprintf("racer-%d-%d", i, life)
				if life == 0 {
					lives = 1 + rand.IntN(n*deciders/2)
				}
				if h.run(t, r, ids, lives) {
					kills.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if len(h.first) != n || kills.Load() < processes/2 {
		t.Errorf("%d gates of %d were answered, %d kills", len(h.first), n, kills.Load())
	}
	// Later readers, and the rows, say the same; words are the winner's.
	later := w.start(asking(), nil)
	if _, err := later.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	won := map[gates.Reason]int{}
	for _, id := range ids {
		d := w.wait(later, id)
		h.add(t, "a later reader", heard{id, d})
		won[d.Reason]++
		if d.Reason != gates.TimedOut && d.Detail != "by "+d.By {
			t.Errorf("%+v: not the words of who decided", d)
		}
	}
	for _, state := range audit.GateStates {
		gs, _, err := later.List(t.Context(), w.tenant, state, 200, "")
		if err != nil || len(gs) != won[gates.Reason(state)] {
			t.Errorf("%s: %d rows, want %d (%v)", state, len(gs), won[gates.Reason(state)], err)
		}
		for i := range gs {
			h.add(t, "a row", heard{gs[i].ID, *gates.Show(&gs[i], true).Decision})
		}
	}
	t.Logf("%d kills, %d answers heard, %v", kills.Load(), h.lines, won)
}

package facts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/repair"
	sink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/store"
)

// workerEnv holds what a worker process is to do: "number calls id".
const workerEnv = "EVENHAND_TEST_FACTS_WORKER"

// worker adds facts to one interaction, several at once, some as itself and some as a caller that all
// processes share.
func worker() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var number, calls int
	var id string
	if _, err := fmt.Sscan(os.Getenv(workerEnv), &number, &calls, &id); err != nil {
		return fail(err)
	}
	event, err := audit.ParseID(id)
	if err != nil {
		return fail(err)
	}
	cfg := chconn.DefaultConfig()
	database := os.Getenv("CH_DATABASE") // named in every statement: the engine lets nobody sign in to a test's
	cfg.Addr, cfg.Username, cfg.Password = []string{os.Getenv("CH_ADDR")}, os.Getenv("CH_USER"), os.Getenv("CH_PASSWORD")
	conn, err := chconn.Open(cfg)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = conn.Close() }()
	said, out := &tally{}, &paper{}
	w, err := New(Parts{
		Store: store.New(conn, database), Rows: sink.New(conn, database, sink.Options{}), Current: repair.New(conn, database),
		Stream: out, Opinions: out, Observer: said,
	})
	if err != nil {
		return fail(err)
	}
	var g errgroup.Group
	g.SetLimit(12)
	for i := range calls {
		g.Go(func() error {
			by := who(fmt.Sprint("worker-", number))
			if i%5 == 0 {
				by = who("shared")
			}
			b := Bias{Confidence: Of(audit.Score(i * 1000))}
			if i%2 == 0 {
				b = Bias{Types: Of([]string{"representation"}), Scores: Of([]audit.NamedScore{{Name: fmt.Sprint("worker_", number), Value: audit.Score(i)}})}
			}
			_, err := w.UpdateBias(context.Background(), by, event, b)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return fail(err)
	}
	fmt.Printf("%d %d %d %d\n", said.of("verdict stored"), len(out.events), said.of("verdict unshown"), said.of("verdict unpublished"))
	return 0
}

// A thousand updates of one interaction by four processes: every one is in its history, the record is right
// when the last has answered, and check finds nothing.
func TestAThousandUpdatesByFourProcesses(t *testing.T) {
	calls := 250
	if testing.Short() {
		calls = 25
	}
	f := newFixture(t)
	id := f.events(3)[1]
	var wg sync.WaitGroup
	outs := make([]string, 4)
	begun := time.Now()
	for n := range outs {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %s", workerEnv, n, calls, id),
			"CH_ADDR="+f.cfg.Addr[0], "CH_DATABASE="+f.db, "CH_USER="+f.cfg.Username, "CH_PASSWORD="+f.cfg.Password)
		wg.Go(func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("worker %d: %v\n%s", n, err, out)
			}
			outs[n] = strings.TrimSpace(string(out))
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	t.Logf("%d updates in %v; stored, published, unshown, unpublished: %q", 4*calls, time.Since(begun).Round(time.Millisecond), outs)
	unshown := 0 // on a machine that is too slow for the limit of a step: made up for
	for _, out := range outs {
		var stored, published, late, unpublished int
		if _, err := fmt.Sscan(out, &stored, &published, &late, &unpublished); err != nil || stored != calls || published+unpublished != calls {
			t.Errorf("a worker says %q: %v", out, err)
		}
		unshown += late
	}
	if n := f.count("SELECT count() FROM {{db}}.verdicts FINAL WHERE startsWith(analyzer, 'external:')"); n != uint64(4*calls) {
		t.Errorf("%d facts, want %d", n, 4*calls)
	}
	if n := f.count("SELECT uniqExact(analyzer) FROM {{db}}.current_verdicts WHERE startsWith(analyzer, 'external:')"); n != 5 {
		t.Errorf("%d analyzers stand side by side, want 5", n)
	}
	for _, by := range []string{"worker-0", "worker-1", "worker-2", "worker-3", "shared"} { // no two at one time: the order is told
		if n := f.count("SELECT toUInt64(count() - uniqExact(analysis_ts)) FROM {{db}}.verdicts FINAL WHERE analyzer_version = '" + by + "'"); n != 0 && by != "shared" {
			t.Errorf("%s: %d facts at the time of another", by, n)
		}
	}
	if behind := f.unshown(); behind > 0 && unshown == 0 {
		t.Errorf("%d rows are wrong though every process saw its own shown", behind)
	}
	if _, err := f.mend.Since(t.Context(), time.Now().Add(-time.Hour), func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	it, err := f.st.WithTenant("acme").Find(t.Context(), id)
	if err != nil || !it.BiasDetected || strings.Join(it.BiasTypes, " ") != "representation" || it.Confidence == 0 {
		t.Errorf("%+v %v", it, err)
	}
	f.checked()
}

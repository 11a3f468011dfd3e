package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/embedded/engine"
	"github.com/evenhand/evenhand/store"
)

// check asks the brokers of a running 'up', says what it found in one line of JSON and in its exit
// status, and finds what was taken out of the store behind its back.
func TestCheckAgainstTheLog(t *testing.T) {
	u := startUp(t, t.TempDir())
	must(t, "", "emit", "../../examples/interactions.jsonl", "--data-dir", u.dir, "--quiet", "--resume", filepath.Join(t.TempDir(), "r"))
	var rep store.Report
	check := func(args ...string) (code int) {
		t.Helper()
		r := evenhand(t, "", append([]string{"check", "--data-dir", u.dir, "--json"}, args...)...)
		rep = store.Report{}
		last := strings.Split(strings.TrimSpace(r.out), "\n")
		if err := json.Unmarshal([]byte(last[len(last)-1]), &rep); err != nil {
			t.Fatalf("%v: %s%s", err, r.out, r.err)
		}
		for _, field := range []string{`"kills":0`, `"events":`, `"lost":`, `"double":`} {
			if !strings.Contains(r.out, field) {
				t.Errorf("no %s in %s", field, r.out)
			}
		}
		return r.code
	}
	eventually(t, "every message taken in", func() error {
		if code := check("--at-rest"); code != 0 || rep.Log == nil || rep.Log.Messages < 4 || rep.Events != 114 || rep.InFlight > 0 || rep.Log.Waiting > 0 {
			return fmt.Errorf("status %d, %+v %+v", code, rep, rep.Log)
		}
		return nil
	})
	if rep.Lost+rep.Double != 0 || rep.Log.Judged != 114 || rep.Log.Results < 114 {
		t.Errorf("%+v %+v", rep, rep.Log)
	}

	p, err := engine.Running(filepath.Join(u.dir, "store"), engine.Writer)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := chconn.Open(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// The broker trims its log of what was taken in, but never the last message of a partition.
	id := strings.TrimSpace(strings.TrimPrefix(must(t, "", "sql", "--data-dir", u.dir, "SELECT argMax(event_id, (partition, offset)) AS id FROM interactions"), "id\n"))
	for _, table := range []string{"interactions", "verdicts", "audit_current", "interaction_texts", "interaction_users"} {
		if err := conn.Exec(t.Context(), "DELETE FROM evenhand."+table+" WHERE event_id = '"+id+"'"); err != nil {
			t.Fatal(err)
		}
	}
	if code := check(); code != 3 || len(rep.Faults) != 2 || rep.Faults[0].Code != store.FaultDeliveryMissing || rep.Faults[1].Code != store.FaultInteractionDeleted || rep.Lost != 1 {
		t.Errorf("a lost row: status %d, %+v", code, rep.Faults)
	}
	if code := check("--store-only"); code != 3 || rep.Log != nil || len(rep.Faults) != 1 || rep.Faults[0].Code != store.FaultInteractionDeleted || rep.Lost != 1 {
		t.Errorf("from the store alone its seal tells: status %d, %+v", code, rep)
	}
	if x := rep.Seals; x.Signed != x.Markers || len(x.Signers) != 1 {
		t.Errorf("'up' signs what it commits: %+v", x)
	}
	// Who cannot read the data folder checks with the public key.
	auditor := settings{DataDir: t.TempDir(), Seal: sealSettings{PublicKeys: []string{filepath.Join(u.dir, "seal", "seal.pub")}}}
	if keys, err := auditor.sealKeys(); err != nil || len(keys) != 1 || keys[rep.Seals.Signers[0]] == nil {
		t.Errorf("keys %v, %v; signed with %v", keys, err, rep.Seals.Signers)
	}
}

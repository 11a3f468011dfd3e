package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// One person is erased by commands: a tenant that is none is refused, both figures are said, and check knows what the key
// of 'up' signed. Holds name events by the producer's own ids.
func TestEraseByCommands(t *testing.T) {
	u := startUp(t, t.TempDir())
	events := strings.Join([]string{
		`{"id": "talk-1", "tenant_id": "harbour", "user_id": "p-9", "prompt": "Which berth has the ferry?", "response": "Berth four, from nine on."}`,
		`{"id": "talk-2", "tenant_id": "harbour", "user_id": "p-9", "prompt": "And tomorrow?", "response": "The same one."}`,
		`{"id": "talk-3", "tenant_id": "harbour", "user_id": "p-5", "prompt": "Is the crane free?", "response": "After noon."}`,
	}, "\n") + "\n"
	must(t, events, "emit", "-", "--data-dir", u.dir, "--quiet", "--resume", filepath.Join(t.TempDir(), "r"))
	u.arrived(3)
	retention := func(args ...string) result {
		return evenhand(t, "", append(append([]string{"retention"}, args...), "--data-dir", u.dir)...)
	}

	for _, more := range [][]string{{"--dry-run"}, {"--reason", "request-1"}} {
		if r := retention(append([]string{"erase", "harbor", "--user", "p-9"}, more...)...); r.code != 2 || !strings.Contains(r.err, `no interaction of "harbor" is stored; --unknown-tenant`) {
			t.Errorf("a tenant of which nothing is stored: status %d, %s%s", r.code, r.out, r.err)
		}
	}
	if r := retention("erasures", "--json"); strings.TrimSpace(r.out) != "[]" {
		t.Errorf("a refused erasure is noted: %s", r.out)
	}
	if r := retention("erase", "harbor", "--user", "p-9", "--reason", "request-1", "--unknown-tenant"); r.code != 0 || !strings.Contains(r.err, "warning: no texts of this user") {
		t.Errorf("status %d, %s%s", r.code, r.out, r.err)
	}

	if r := retention("hold", "add", "harbour", "--event", "talk-2", "--reason", "case-1", "--by", "ann"); r.code != 0 || !strings.Contains(r.out, "names 1 interaction\n") {
		t.Errorf("a hold of an id of the producer's: status %d, %s%s", r.code, r.out, r.err)
	}
	if r := retention("hold", "add", "harbour", "--event", "", "--reason", "case-1"); r.code != 2 {
		t.Errorf("a hold of no id: status %d, %s%s", r.code, r.out, r.err)
	}
	r := retention("hold", "list")
	if lines := strings.Split(r.out, "\n"); len(lines) != 3 || strings.Join(strings.Fields(lines[1])[1:6], " ") != "harbour 1 event 1 case-1" || !strings.Contains(lines[1], "Z  ann  0") {
		t.Errorf("hold list: %s%s", r.out, r.err)
	}
	if r := retention("hold", "list", "--json"); !strings.Contains(r.out, `"interactions": 1`) {
		t.Errorf("hold list: %s%s", r.out, r.err)
	}

	if r := retention("erase", "harbour", "--user", "p-9", "--reason", "request-2", "--by", "ann"); r.code != 0 || !strings.Contains(r.out, "3 texts of 1 interaction went\nlegal holds keep the texts of 1 interaction") {
		t.Errorf("erase: status %d, %s%s", r.code, r.out, r.err)
	}
	r = retention("erasures")
	if lines := strings.Split(r.out, "\n"); len(lines) != 4 || strings.Join(strings.Fields(lines[2])[5:8], " ") != "1 3 done" || !strings.HasSuffix(lines[2], "; legal holds keep 1 interaction") {
		t.Errorf("erasures: %s%s", r.out, r.err)
	}
	if mine, others := retention("erasures", "--tenant", "harbour", "--user", "p-9"), retention("erasures", "--user", "p-5", "--json"); strings.Count(mine.out, "\n") != 2 || !strings.Contains(mine.out, "request-2") || strings.TrimSpace(others.out) != "[]" {
		t.Errorf("erasures of a user: %s%s%s%s", mine.out, mine.err, others.out, others.err)
	}
	if r := retention("erase", "harbour", "--user", "p-9", "--dry-run"); r.code != 0 || !strings.Contains(r.err, "this user was erased before: ") {
		t.Errorf("erased before: status %d, %s%s", r.code, r.out, r.err)
	}
	if got := u.checked(); !strings.Contains(got, "those of 1 were taken by erasures of persons") || strings.Contains(got, "nobody signed") {
		t.Errorf("check: %s", got)
	}
}

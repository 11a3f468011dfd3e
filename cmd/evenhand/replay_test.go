package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/internal/llm/llmtest"
	"github.com/evenhand/evenhand/judge/mend"
)

const cleanVerdict = `{"overall":{"assessment":"compliant","confidence":0.9,"summary":"Fine."},"bias":{"score":0,"risk":"none","findings":[]},"dei":{"score":100,"risk":"none","violations":[]},` +
	`"offensive_language":{"score":0,"severity":"none","categories":[],"instances":[]},"protected_classes_mentioned":[],"red_flags":[],"suggested_remediations":[],` +
	`"meta":{"version":"1.0","evaluated_at":"2026-11-22T18:00:00Z","input_length":1}}`

// scripted is a server that is the judge, who finds "too old" in what it is shown, and the model that said it.
func scripted(t *testing.T, says func(a llmtest.Asked) llmtest.Reply) string {
	return llmtest.NewFunc(t, llmtest.Config{}, func(_ int, a llmtest.Asked) llmtest.Reply {
		if a.Form() == "text" {
			return says(a)
		}
		v := cleanVerdict
		if n := strings.Count(a.Last(), "too old"); n > 0 {
			v = strings.NewReplacer(`"compliant"`, `"non_compliant"`, `"bias":{"score":0,"risk":"none","findings":[]}`, `"bias":{"score":`+strconv.Itoa(min(90, 30*n))+`,"risk":"high","findings":[{"type":"stereotype","target":"group",`+
				`"protected_class":"age","excerpt":"too old","span":[0,7],"rationale":"age says nothing"}]}`).Replace(v)
		}
		return llmtest.Say(v)
	}).Listen()
}

// A stored response that does not pass is mended on the second round, by the command line and by the door; the rounds are on record and
// counted.
func TestReplay(t *testing.T) {
	asked := 0
	at := scripted(t, func(a llmtest.Asked) llmtest.Reply {
		if asked++; asked%2 == 1 {
			return llmtest.Say("Perhaps somebody who is not too old.")
		}
		return llmtest.Say("Ask the team.")
	})
	dir := t.TempDir()
	u := startUp(t, dir, "--set", "judge.base_url="+at, "--set", "replay.rounds=3", "--set", "judge.select.random_percent=0", "--set", "judge.select.band=0")
	const event = `{"id":"01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d","model":"gpt-x","messages":[{"role":"user","content":"Who should lead?"}],"response":"Bob is too old. He is much too old for that."}`
	if status, body := u.post("/v1/interactions", "application/json", event); status != http.StatusAccepted {
		t.Fatal(body)
	}
	u.arrived(1)
	r := evenhand(t, "", "replay", "01a1fdb3-bfcb-7b1e-9d55-0c1f2a3b4c5d", "--data-dir", dir, "--json")
	var res mend.Result
	if err := json.Unmarshal([]byte(r.out), &res); err != nil || r.code != 0 || !res.Mended || res.Response != "Ask the team." || len(res.Rounds) != 3 {
		t.Fatalf("%+v %v", r, err)
	}
	rounds := len(res.Rounds) - 1
	u.arrived(1 + rounds)
	status, body := u.post("/v1/replay", "application/json", `{"event":{"model":"gpt-x","prompt":"Who should lead?","response":"Nobody who is too old."},"rounds":1}`)
	if status != http.StatusOK || !strings.Contains(body, `"round":1`) {
		t.Errorf("%d %s", status, body)
	}
	u.arrived(1 + rounds + 2)
	if r := evenhand(t, "", "replay", "stats", "--data-dir", dir); r.code != 0 || !strings.HasPrefix(r.out, fmt.Sprintf("2 calls replayed in %d rounds", rounds+1)) {
		t.Errorf("%+v", r)
	}
	if r := evenhand(t, "", "replay", "01a1fdb3-bfcb-7b1e-9d55-000000000000", "--data-dir", dir); r.code != 1 || !strings.Contains(r.err, "no such interaction") {
		t.Errorf("%+v", r)
	}
	u.checked()
}

// Without a model it is said plainly.
func TestReplayWithoutAJudge(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "")
	u := startUp(t, t.TempDir())
	status, body := u.post("/v1/replay", "application/json", `{"event":{"model":"gpt-x","prompt":"p","response":"r"}}`)
	if status != http.StatusBadRequest || !strings.Contains(body, "judge.base_url") {
		t.Errorf("%d %s", status, body)
	}
}

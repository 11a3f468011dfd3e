package main

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/llm/llmtest"
)

// The guard asks the judge before it decides, and the record has what it said; without a model the process does not start.
func TestGuardAsksTheJudge(t *testing.T) {
	at := scripted(t, func(llmtest.Asked) llmtest.Reply { return llmtest.Say("Ask the team.") })
	u := startUp(t, t.TempDir(), "--set", "judge.base_url="+at, "--set", "guard.judge=all", "--set", "guard.judge_action=block", "--set", "judge.select.random_percent=0")
	for text, want := range map[string][]string{
		"Bob is too old.": {`"action":"block"`, `"NonCompliantError"`, `"assessment":"non_compliant"`, `"evidence":"too old"`},
		"Ask the team.":   {`"action":"allow"`, `"assessment":"compliant"`},
	} {
		status, body := u.post("/v1/guard", "application/json", fmt.Sprintf(`{"response":%q}`, text))
		for _, w := range want {
			if status != http.StatusOK || !strings.Contains(body, w) {
				t.Errorf("%q: %d %s, want %s", text, status, body, w)
			}
		}
	}
	u.arrived(2)
	if n := u.count(`SELECT count() AS n FROM interaction_texts FINAL WHERE kind = 'metadata' AND JSONExtractString(text, 'guard', 'judge', 'assessment') = 'non_compliant'`); n != 1 {
		t.Errorf("%d records with the judge's note", n)
	}
	t.Setenv("OPENAI_API_KEY", "")
	if r := evenhand(t, "", "up", "--data-dir", t.TempDir(), "--http", "127.0.0.1:0", "--set", "guard.judge=all"); r.code != 2 || !strings.Contains(r.err, "judge.base_url") {
		t.Errorf("%+v", r)
	}
}

// The judge is asked on request by GraphQL, through its topic, and answers on the record.
func TestJudgeOnRequestByGraphQL(t *testing.T) {
	server := llmtest.NewFunc(t, llmtest.Config{}, judgeSays)
	u := startUp(t, t.TempDir(), "--set", "judge.base_url="+server.Listen(), "--set", "judge.select.random_percent=0")
	const ask = `mutation($id:ID!){askJudge(id:$id){outcome verdictId}}`
	admin := strings.TrimSpace(must(t, "", "token", "--data-dir", u.dir, "--tenant", "acme", "--role", "admin"))
	viewer := strings.TrimSpace(must(t, "", "token", "--data-dir", u.dir, "--tenant", "acme", "--role", "viewer"))
	vars := map[string]any{"id": audit.DeriveID("asked").String()}
	u.graphql(admin, `mutation($id:ID!){createLlmInteractionAudit(input:{id:$id,response:"The film is too emotional."}){id}}`, vars)
	u.arrived(1)
	if _, body := u.graphql(viewer, ask, vars); !strings.Contains(body, `"code":"FORBIDDEN"`) {
		t.Errorf("a viewer: %s", body)
	}
	var first string
	for range 2 {
		_, body := u.graphql(admin, ask, vars)
		if !strings.Contains(body, `"outcome":"REQUESTED"`) && !strings.Contains(body, `"outcome":"ALREADY_JUDGED"`) || first != "" && !strings.Contains(body, first) {
			t.Fatalf("%s, before %s", body, first)
		}
		_, first, _ = strings.Cut(body, `"verdictId":`)
	}
	eventually(t, "the judge's verdict", func() error {
		if _, body := u.graphql(admin, `query($id:ID!){llmInteractionAudit(id:$id){biasDetected judgement{assessment suggestedRemediations{suggestedRewrite}}}}`, vars); !strings.Contains(body, `"biasDetected":true,"judgement":{"assessment":"non_compliant","suggestedRemediations":[{"suggestedRewrite":"under pressure`) {
			return errors.New(body)
		}
		return nil
	})
	if _, body := u.graphql(admin, ask, vars); !strings.Contains(body, `"outcome":"ALREADY_JUDGED"`) || !strings.Contains(body, first) {
		t.Errorf("judged: %s, want %s", body, first)
	}
	if n := len(readTopic(t, u.Kafka, kafkaconn.Judge)); n < 1 || n > 2 {
		t.Errorf("%d requests on the topic", n)
	}
	if n := u.count(`SELECT count() AS n FROM verdicts FINAL WHERE analyzer = 'judge'`); n != 1 {
		t.Errorf("%d verdicts of the judge", n)
	}
	u.checked()
}

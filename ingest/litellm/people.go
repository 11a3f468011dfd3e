package litellm

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/evenhand/evenhand/ingest/call"
)

// system are instructions that stand apart from the messages: of the Responses API, of Anthropic.
func (o object) system() string {
	params := o.object("model_parameters")
	return cmp.Or(params.text("instructions"), params.text("system"))
}

// people says who asked, for whom and where. requester_metadata is what the caller gave along: its tenant, domain, user_id,
// session_id, application and decision_id are read, the rest is kept.
func (o object) people(p *call.Part) {
	meta := o.object("metadata")
	given, headers := meta.object("requester_metadata"), meta.object("requester_custom_headers")
	p.Claimed = cmp.Or(given.text("tenant_id"), given.text("tenant"), header(headers, "x-evenhand-tenant"), header(headers, "x-tenant"))
	p.Domain = given.text("domain")
	p.Session = cmp.Or(p.Session, given.text("session_id"), given.text("conversation_id"))
	p.Service = cmp.Or(given.text("application"), given.text("service"), meta.text("user_api_key_alias"))
	p.DecisionID = given.text("decision_id")
	p.UserID = cmp.Or(o.text("end_user"), o.object("model_parameters").text("user"), given.text("user_id"), meta.text("user_api_key_end_user_id"))
	if p.UserID == "" { // nobody but the owner of the key is known
		p.UserID, p.UserEmail = meta.text("user_api_key_user_id"), meta.text("user_api_key_user_email")
	}
	p.Metadata = o.kept(meta, given)
}

// kept is what an audit may want to know: the caller's own metadata, the names of the proxy's key, team and
// organisation, tags, the group of models, guards that ran. Keys' hashes, addresses, headers and budgets are dropped.
func (o object) kept(meta, given object) map[string]any {
	kept := map[string]any{}
	keep := func(name string, raw json.RawMessage) {
		var v any
		if len(raw) == 0 || json.Unmarshal(flat(raw), &v) != nil {
			return
		}
		switch t := v.(type) {
		case nil:
			return
		case bool:
			if !t {
				return
			}
		case string:
			if t == "" {
				return
			}
		case []any:
			if len(t) == 0 {
				return
			}
		}
		kept[name] = v
	}
	for _, name := range []string{"model_group", "request_tags", "cache_hit"} {
		keep(name, o[name])
	}
	for _, name := range []string{
		"user_api_key_alias", "user_api_key_user_id", "user_api_key_team_id", "user_api_key_team_alias", "user_api_key_org_id", "user_api_key_org_alias",
		"user_api_key_project_id", "user_api_key_project_alias", "applied_guardrails", "spend_logs_metadata",
	} {
		keep(name, meta[name])
	}
	for name, raw := range given {
		switch name {
		case "tenant_id", "tenant", "domain", "user_id", "session_id", "conversation_id", "application", "service", "decision_id": // read above
		case "headers", "trace_id", "used_client_oauth_token": // put there by the proxy
		default:
			keep(name, raw)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	return kept
}

// header finds a header under any spelling of its name.
func header(headers object, name string) string {
	for k := range headers {
		if strings.EqualFold(k, name) {
			return headers.text(k)
		}
	}
	return ""
}

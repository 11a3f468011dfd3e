package otlp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/evenhand/evenhand/ingest/call"
)

// Names list attributes of the operator's own that tell whom a call belongs to, before those of KnownNames. Of each list
// the first that a span has holds, then the first that its resource has. "name#key" is a key of an attribute that holds
// an object, as JSON or as Python writes it.
type Names struct {
	Tenant  []string `koanf:"tenant_attributes"`
	Domain  []string `koanf:"domain_attributes"`
	User    []string `koanf:"user_attributes"`
	Session []string `koanf:"session_attributes"`
}

// Where clients put what the application says of a call: a prefix of attributes, or an attribute that holds an object.
var (
	metaPrefixes = []string{"langfuse.trace.metadata", "langfuse.observation.metadata", "ai.telemetry.metadata", "traceloop.association.properties"}
	metaObjects  = []string{"metadata", "metadata.requester_metadata", "langfuse.trace.metadata", "langfuse.observation.metadata"}
)

// KnownNames are asked always; docs/otlp.md has them.
func KnownNames() Names {
	told := func(own []string, keys ...string) []string {
		for _, k := range keys {
			for _, p := range metaPrefixes {
				own = append(own, p+"."+k)
			}
			for _, o := range metaObjects {
				own = append(own, o+"#"+k)
			}
		}
		return own
	}
	return Names{
		Tenant:  told([]string{"tenant.id", "tenant_id", "app.tenant"}, "tenant", "tenant_id", "tenantId"),
		Domain:  told([]string{"evenhand.domain", "app.domain"}, "domain"),
		User:    told([]string{"user.id", "enduser.id", "langfuse.user.id", "gen_ai.user", "llm.user"}, "user_id", "userId"),
		Session: told([]string{"gen_ai.conversation.id", "session.id", "langfuse.session.id"}, "session_id", "sessionId"),
	}
}

// Validate reports every fault at once under the operator's keys.
func (n Names) Validate() error {
	var errs []error
	for key, list := range map[string][]string{"tenant": n.Tenant, "domain": n.Domain, "user": n.User, "session": n.Session} {
		for _, name := range list {
			if attr, inner, keyed := strings.Cut(name, "#"); attr == "" || keyed && inner == "" {
				errs = append(errs, fmt.Errorf("otlp.%s_attributes: %q wants the name of an attribute, or name#key", key, name))
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(errs...)
}

// name is one entry of Names.
type name struct{ attr, key string }

type names struct{ tenant, domain, user, session []name }

func (n Names) compiled() names {
	d := KnownNames()
	of := func(own, known []string) (out []name) {
		for _, s := range slices.Concat(own, known) {
			attr, key, _ := strings.Cut(s, "#")
			out = append(out, name{attr, key})
		}
		return out
	}
	return names{of(n.Tenant, d.Tenant), of(n.Domain, d.Domain), of(n.User, d.User), of(n.Session, d.Session)}
}

// find gives what the first of the names tells.
func (a *attrs) find(list []name) string {
	for _, n := range list {
		if !a.has(n.attr) {
			continue
		}
		s := ""
		if n.key == "" {
			s = unquoted(a.text(n.attr))
		} else {
			s = scalar(a.object(n.attr)[n.key])
		}
		if s != "" {
			return s
		}
	}
	return ""
}

// object gives an attribute that holds an object, as an AnyValue, as JSON or as Python writes it; nil is none.
func (a *attrs) object(name string) map[string]any {
	if m, known := a.objects[name]; known || !a.has(name) {
		return m
	}
	v, raw := a.value(name)
	m, ok := v.(map[string]any)
	if !ok && strings.HasPrefix(raw, "{") {
		m, _ = python(raw).(map[string]any)
	}
	if a.objects == nil {
		a.objects = map[string]map[string]any{}
	}
	a.objects[name] = m
	return m
}

// origin is what a resource tells of all of its spans.
type origin struct{ service, tenant, domain, user, session string }

// origin reads a resource. The name that an SDK makes up for want of a service's is none.
func (n *names) origin(r *resourcepb.Resource) origin {
	a := newAttrs(r.GetAttributes())
	o := origin{a.text("service.name"), a.find(n.tenant), a.find(n.domain), a.find(n.user), a.find(n.session)}
	if strings.HasPrefix(o.service, unnamed) {
		o.service = ""
	}
	return o
}

// owner fills in whom a call belongs to, as a span, else its resource, tells it.
func (n *names) owner(p *call.Part, span *attrs, from origin) {
	p.Claimed, p.Domain = cmp.Or(span.find(n.tenant), from.tenant), cmp.Or(span.find(n.domain), from.domain)
	p.UserID, p.Session = cmp.Or(span.find(n.user), from.user), cmp.Or(span.find(n.session), from.session)
	p.UserEmail, p.UserRole = span.text("user.email", "enduser.email"), span.text("enduser.role", "user.role")
	p.DecisionID = span.text("evenhand.decision_id")
	p.Metadata = span.metadata()
}

const metaRoom = 64 << 10 // bytes

// metadata gathers what the application itself says, at most 64 KiB of it.
func (a *attrs) metadata() map[string]any {
	var all map[string]any
	room := metaRoom
	add := func(k string, v any) {
		if room -= len(k) + len(written(v)); v == nil || room < 0 {
			return
		}
		if all == nil {
			all = map[string]any{}
		}
		if _, has := all[k]; !has {
			all[k] = shallow(v, jsonDeep)
		}
	}
	for _, o := range metaObjects {
		m := a.object(o)
		for _, k := range slices.Sorted(maps.Keys(m)) {
			add(k, m[k])
		}
	}
	for _, kv := range a.list {
		for _, p := range metaPrefixes {
			key, ok := strings.CutPrefix(kv.GetKey(), p)
			if !ok || len(key) < 2 || key[0] != '.' {
				continue
			}
			v := plain(kv.GetValue())
			if s, is := v.(string); is && len(s) < metaRoom {
				v = parsed(unquoted(s))
			}
			add(key[1:], v)
		}
	}
	if tags, _ := a.value("langfuse.trace.tags"); tags != nil {
		add("tags", tags)
	} else if tags, _ := a.value("tag.tags"); tags != nil {
		add("tags", tags)
	}
	return all
}

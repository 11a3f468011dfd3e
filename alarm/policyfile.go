package alarm

import (
	"bytes"
	"cmp"
	_ "embed" // policy.yaml
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/evenhand/evenhand/audit"
)

//go:embed policy.yaml
var shipped []byte

// DefaultPolicies are those that are shipped.
func DefaultPolicies() (*Policies, error) { return ParsePolicies(nil) }

// ParsePolicies reads a file of policies over the shipped ones; nil or empty is the shipped ones alone. The file's
// policies come before the shipped ones and take the place of those whose name they bear.
// Its error names every fault with its line, the key as it is written and what to write instead.
func ParsePolicies(file []byte) (*Policies, error) {
	var r policyReader
	base := Policy{Name: defaultName, Tenant: "*", Domain: "*", Kind: "*"}
	first := r.read(shipped, &base)
	var own *yaml.Node
	if len(strings.TrimSpace(string(file))) > 0 {
		own = r.read(file, &base)
	}
	list := r.list(own, &base)
	for _, p := range r.list(first, &base) { // behind the file's, which may name one to set it otherwise
		if !slices.ContainsFunc(list, func(q Policy) bool { return q.Name == p.Name }) {
			list = append(list, p)
		}
	}
	if err := errors.Join(r.faults...); err != nil {
		return nil, audit.E("alarm: policies", audit.KindInvalid, err)
	}
	return &Policies{append(list, base)}, nil
}

type policyReader struct{ faults []error }

func (r *policyReader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("line %d: "+format, append([]any{n.Line}, args...)...))
}

// read takes the defaults of a file into base and gives the node of its policies, nil for none.
func (r *policyReader) read(file []byte, base *Policy) (policies *yaml.Node) {
	var doc, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(file))
	if err := d.Decode(&doc); err != nil && !errors.Is(err, io.EOF) { // comments alone are an empty document
		r.faults = append(r.faults, fmt.Errorf("not YAML: %w", err))
		return nil
	}
	switch err := d.Decode(&more); {
	case err == nil:
		r.fault(&more, "a second document, which nobody would read; write all policies into one, without ---")
	case !errors.Is(err, io.EOF):
		r.faults = append(r.faults, fmt.Errorf("not YAML: %w", err))
	}
	if len(doc.Content) == 0 { // comments alone
		return nil
	}
	version := false
	r.each(doc.Content[0], "the file", func(name string, n *yaml.Node) {
		switch name {
		case "version":
			version = true
			if n.Value != "1" {
				r.fault(n, "version: %q is not known here; write 1", n.Value)
			}
		case "defaults":
			r.policy(n, "defaults", base, false)
		case "policies":
			policies = n // after the defaults, wherever they stand
		default:
			r.fault(n, "%s: unknown key; a file has version, defaults and policies", name)
		}
	})
	if !version {
		r.fault(doc.Content[0], "version: is missing; write version: 1")
	}
	return policies
}

// list gives the policies of a node over the defaults.
func (r *policyReader) list(policies *yaml.Node, base *Policy) (list []Policy) {
	if policies == nil || policies.Tag == "!!null" {
		return nil
	}
	if policies.Kind != yaml.SequenceNode {
		r.fault(policies, "policies: is not a list; begin each policy with \"- name: …\"")
		return nil
	}
	names := map[string]bool{defaultName: true}
	for i, n := range policies.Content {
		p := *base
		p.Name = ""
		where := fmt.Sprintf("policies[%d]", i)
		r.policy(n, where, &p, true)
		switch {
		case !policyName.MatchString(p.Name):
			r.fault(n, "%s.name: %q is no name; take up to 64 of a-z 0-9 . _ -", where, p.Name)
		case names[p.Name]:
			r.fault(n, "%s.name: %q is taken; breaches bear the name of their policy, so each needs its own", where, p.Name)
		}
		names[p.Name] = true
		list = append(list, p)
	}
	return list
}

var policyName = regexp.MustCompile(`^[a-z0-9_.-]{1,64}$`)

// each calls f for the keys of a mapping.
func (r *policyReader) each(n *yaml.Node, where string, f func(name string, n *yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "%s: is not a group of keys", where)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if seen[name] {
			r.fault(n.Content[i], "%s: %s stands twice; keep one", where, name)
		}
		seen[name] = true
		f(name, n.Content[i+1])
	}
}

func (r *policyReader) policy(n *yaml.Node, where string, p *Policy, named bool) {
	r.group(n, where, "", p, named)
	if p.Ticket.LongWindow > 0 && p.Ticket.LongWindow <= p.Ticket.Window {
		r.fault(n, "%s.ticket.long_window: %s is not above ticket.window (%s); 0h switches it off", where, short(p.Ticket.LongWindow), short(p.Ticket.Window))
	}
	if p.Blind.Resolve < p.Blind.Coverage {
		r.fault(n, "%s.blind.resolve: %g is below blind.coverage (%g), which would open and resolve in turn", where, p.Blind.Resolve, p.Blind.Coverage)
	}
	if !known(p.Domain) {
		r.fault(n, "%s.domain: %q is not a domain; it is one of %s, or ends in *", where, p.Domain, audit.List(audit.Domains))
	}
	for head, names := range map[string][]string{"charter.": groundNames(), "safety.": audit.SafetyCategories} {
		if name, ok := strings.CutPrefix(p.Kind, head); ok && !slices.ContainsFunc(names, func(s string) bool { return matches(name, s) }) {
			r.fault(n, "%s.kind: no finding is of kind %q; behind %q stands one of %s, or a beginning and *", where, p.Kind, head, audit.List(names))
		}
	}
}

func groundNames() (names []string) {
	for _, g := range audit.Grounds {
		names = append(names, string(g))
	}
	return names
}

// group reads keys under prefix, and groups in it.
func (r *policyReader) group(n *yaml.Node, where, prefix string, p *Policy, named bool) {
	r.each(n, where, func(name string, v *yaml.Node) {
		at, full := where+"."+name, prefix+name
		if named && prefix == "" {
			if field := map[string]*string{"name": &p.Name, "tenant": &p.Tenant, "domain": &p.Domain, "kind": &p.Kind}[name]; field != nil {
				if *field = v.Value; v.Value == "" {
					r.fault(v, "%s: is empty; * matches all", at)
				}
				return
			}
		}
		for i := range keys {
			k := &keys[i]
			if k.name == full {
				if err := k.set(p, v.Value); err != nil {
					r.fault(v, "%s: %w", at, err)
				}
				return
			}
			if strings.HasPrefix(k.name, full+".") {
				r.group(v, at, full+".", p, named)
				return
			}
		}
		r.fault(v, "%s: unknown key%s", at, nearest(full))
	})
}

// nearest suggests the key that shares the longest beginning and end with a wrong one.
func nearest(name string) string {
	best, score := "", 0
	var names []string
	for _, k := range keys {
		names = append(names, k.name)
		if group, _, ok := strings.Cut(k.name, "."); ok && !strings.Contains(name, ".") {
			names = append(names, group)
		}
	}
	for _, candidate := range names {
		a, b, n := candidate, name, 0
		for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
			a, b, n = a[1:], b[1:], n+1
		}
		for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
			a, b, n = a[:len(a)-1], b[:len(b)-1], n+1
		}
		if n > score || n == score && len(candidate) < len(best) {
			best, score = candidate, n
		}
	}
	if 2*score < len(name) {
		return "; `evenhand alarms policy` prints all keys"
	}
	return "; did you mean " + best + "?"
}

// set parses a value and holds it to its range.
func (k *key) set(p *Policy, s string) error {
	within := func(v float64) error {
		if v < k.lo || v > k.hi || k.more && v == k.lo || v != v {
			return fmt.Errorf("%s is not in %s%g..%g", s, map[bool]string{true: "above "}[k.more], k.lo, k.hi)
		}
		return nil
	}
	switch at := k.at(p).(type) {
	case *bool:
		v, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		*at = v
	case *uint64:
		v, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not a whole number", s)
		}
		*at = v
		return within(float64(v))
	case *float64:
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return fmt.Errorf("%q is not a number", s)
		}
		*at = v
		return within(v)
	case *time.Duration:
		v, err := time.ParseDuration(cmp.Or(map[bool]string{true: "0h"}[s == "0"], s))
		if err != nil || v%time.Hour != 0 {
			return fmt.Errorf("%q is not a number of whole hours such as 24h", s)
		}
		*at = v
		return within(v.Hours())
	}
	return nil
}

func short(d time.Duration) string { return strconv.Itoa(hours(d)) + "h" }

package remediation

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
)

// link is an address with its name.
type link struct{ Title, URL string }

// links are those of the policy for a breach's window.
func (p Policy) links(b *audit.Breach) (out []link) {
	for _, l := range []struct{ title, template string }{{"Review the interactions", p.Review}, {"Trend in Grafana", p.Grafana}} {
		if u, err := fill(l.template, b); err == nil && u != "" {
			out = append(out, link{l.title, u})
		}
	}
	return out
}

// fill puts a breach's values into a URL template, each escaped. An empty template gives "".
func fill(template string, b *audit.Breach) (string, error) {
	if template == "" {
		return "", nil
	}
	values := map[string]string{
		"tenant": b.Tenant, "domain": string(b.Domain), "kind": b.Kind, "group": b.Group, "policy": b.Policy, "breach": b.ID.String(), "board": board(b),
		"from": b.From.UTC().Format(time.RFC3339), "to": b.To.UTC().Format(time.RFC3339),
		"from_ms": strconv.FormatInt(b.From.UnixMilli(), 10), "to_ms": strconv.FormatInt(b.To.UnixMilli(), 10),
	}
	var out strings.Builder
	for rest := template; ; {
		head, tail, found := strings.Cut(rest, "{")
		out.WriteString(head)
		if !found {
			break
		}
		name, after, closed := strings.Cut(tail, "}")
		v, known := values[name]
		if !closed || !known {
			return "", fmt.Errorf("{%s} is none of tenant, domain, kind, group, policy, breach, board, from, to, from_ms, to_ms", name)
		}
		out.WriteString(strings.ReplaceAll(url.QueryEscape(v), "+", "%20"))
		rest = after
	}
	u, err := url.Parse(out.String())
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", errors.New("is not an http address")
	}
	return out.String(), nil
}

// board is the uid of the dashboard that shows a breach's kind.
func board(b *audit.Breach) string {
	if b.Kind == "" || strings.HasPrefix(b.Kind, "charter.") {
		return "evenhand-bias-rates"
	}
	return "evenhand-safety"
}

package alarm

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Print writes the policies as a file that says everything: the default first, then what each other
// policy sets otherwise.
func (p *Policies) Print(w io.Writer) error {
	var b strings.Builder
	base := &p.list[len(p.list)-1]
	b.WriteString("version: 1\ndefaults:\n")
	writeKeys(&b, "  ", base, nil)
	b.WriteString("policies:")
	if len(p.list) == 1 {
		b.WriteString(" []")
	}
	b.WriteString("\n")
	for i := range p.list[:len(p.list)-1] {
		q := &p.list[i]
		fmt.Fprintf(&b, "  - name: %s\n    tenant: %q\n    domain: %q\n    kind: %q\n", q.Name, q.Tenant, q.Domain, q.Kind)
		writeKeys(&b, "    ", q, base)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeKeys writes the keys of p, those that differ from base when there is one.
func writeKeys(b *strings.Builder, indent string, p, base *Policy) {
	open := ""
	for i := range keys {
		k := &keys[i]
		v := text(k.at(p))
		if base != nil && v == text(k.at(base)) {
			continue
		}
		group, name, grouped := strings.Cut(k.name, ".")
		if !grouped {
			fmt.Fprintf(b, "%s%s: %s\n", indent, k.name, v)
			continue
		}
		if group != open {
			fmt.Fprintf(b, "%s%s:\n", indent, group)
			open = group
		}
		fmt.Fprintf(b, "%s  %s: %s\n", indent, name, v)
	}
}

func text(v any) string {
	switch v := v.(type) {
	case *time.Duration:
		return short(*v)
	case *float64:
		return strconv.FormatFloat(*v, 'g', -1, 64)
	case *uint64:
		return strconv.FormatUint(*v, 10)
	case *bool:
		return strconv.FormatBool(*v)
	}
	return ""
}

package join

import (
	"bytes"
	"strings"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/ingest"
)

// rejected is a dead letter. It keeps no reference to what it is made of.
func rejected(o audit.Origin, key, value []byte, hs []audit.Header) audit.Rejected {
	r := audit.Rejected{Origin: o, Key: bytes.Clone(key), Value: bytes.Clone(value)}
	for _, h := range hs {
		r.Header = append(r.Header, audit.Header{Key: h.Key, Value: bytes.Clone(h.Value)})
		if h.Key == ingest.HeaderTenant && ingest.ValidTenant(string(h.Value)) {
			r.Tenant = string(h.Value)
		}
	}
	return r
}

func tenantHeader(tenant string) []audit.Header {
	if tenant == "" {
		return nil
	}
	return []audit.Header{{Key: ingest.HeaderTenant, Value: []byte(tenant)}}
}

// replayed gives the headers by which a dead letter that is sent again is known as the same, and how often it
// failed. What is rejected again keeps them: so of several rejections of one call one is sent.
func replayed(hs []audit.Header) (past []audit.Header) {
	for _, h := range hs {
		if h.Key == ingest.HeaderEventID || h.Key == ingest.HeaderEventTime || strings.HasPrefix(h.Key, "dlq_") {
			past = append(past, audit.Header{Key: h.Key, Value: bytes.Clone(h.Value)})
		}
	}
	return past
}

// detail joins faults for people, bounded.
func detail(faults []ingest.Fault) string {
	var b strings.Builder
	for i, f := range faults {
		if i == 8 {
			b.WriteString("; and more")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.String())
	}
	return b.String()
}

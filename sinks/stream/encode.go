package stream

import (
	"strconv"
	"unicode/utf8"

	"github.com/evenhand/evenhand/audit"
)

// appendEvent appends the event as JSON with the names of seed 003, section 4.4.5.
func appendEvent(b []byte, e *audit.StreamEvent) []byte {
	b = append(b, `{"audit_id":"`...)
	b = appendID(b, &e.AuditID)
	b = append(b, `","tenant_id":`...)
	b = appendString(b, e.Tenant)
	b = append(b, `,"bias_detected":`...)
	b = strconv.AppendBool(b, e.Detected)
	b = append(b, `,"bias_score":{`...)
	for i, s := range e.Scores {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, s.Name)
		b = append(b, ':')
		b = appendScore(b, s.Value.Capped())
	}
	b = append(b, `},"bias_type":[`...)
	for i, t := range e.BiasTypes {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, t)
	}
	b = append(b, `],"bias_confidence_score":`...)
	b = appendScore(b, e.Confidence)
	b = append(b, `,"timestamp":"`...)
	b = e.Time.UTC().AppendFormat(b, timestampFormat)
	b = append(b, `","trace_id":`...)
	b = appendString(b, e.TraceID)
	return append(b, '}')
}

// timestampFormat is RFC 3339 with milliseconds.
const timestampFormat = "2006-01-02T15:04:05.000Z07:00"

// appendScore writes whole millionths as a decimal without trailing zeros.
func appendScore(b []byte, s audit.Score) []byte {
	n := int64(s)
	if n < 0 {
		b = append(b, '-')
		n = -n
	}
	b = strconv.AppendInt(b, n/int64(audit.One), 10)
	frac := n % int64(audit.One)
	if frac == 0 {
		return b
	}
	b = append(b, '.')
	for unit := int64(audit.One) / 10; frac > 0; unit /= 10 {
		b = append(b, byte('0'+frac/unit))
		frac %= unit
	}
	return b
}

// appendID appends the canonical form of a UUID.
func appendID(b []byte, id *audit.ID) []byte {
	for i, c := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, hexDigits[c>>4], hexDigits[c&15])
	}
	return b
}

const hexDigits = "0123456789abcdef"

// appendString writes a JSON string. Bytes that are no UTF-8 become U+FFFD, as encoding/json has it.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			b = append(b, s[from:i]...)
			b = append(b, "\ufffd"...)
			from = i + 1
		}
		i += size
	}
	b = append(b, s[from:]...)
	return append(b, '"')
}

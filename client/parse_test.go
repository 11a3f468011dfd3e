package client

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

// FuzzSegment: any bytes are read without harm, what was written is read, and what is cut off costs its own record only.
func FuzzSegment(f *testing.F) {
	f.Add([]byte(magic), "a", "acme", []byte(`{}`), 3)
	f.Add(appendRecord([]byte(magic), Encoded{"x", "", []byte("{}")}), "", "", []byte{}, 0)
	f.Fuzz(func(t *testing.T, b []byte, id, tenant string, event []byte, cutAt int) {
		es, err := readSegment(b)
		if err == nil || len(es) > 0 { // it is one: what was read, written again, is what was read
			again := []byte(magic)
			for _, e := range es {
				again = appendRecord(again, e)
			}
			if got, err := readSegment(again); err != nil || !slices.EqualFunc(got, es, same) {
				t.Fatalf("%v: %v", err, got)
			}
		}
		first, second := Encoded{"first", "t", []byte("1")}, Encoded{id, tenant, event}
		head := appendRecord([]byte(magic), first)
		whole := appendRecord(slices.Clone(head), second)
		if got, err := readSegment(whole); err != nil || !slices.EqualFunc(got, []Encoded{first, second}, same) {
			t.Fatalf("%v: %v", err, got)
		}
		torn := whole[:len(head)+max(0, min(cutAt, len(whole)-len(head)-1))]
		if got, err := readSegment(torn); len(got) != 1 || err != nil && !errors.Is(err, errTorn) || !same(got[0], first) {
			t.Fatalf("torn: %v: %v", err, got)
		}
	})
}

func same(a, b Encoded) bool {
	return a.ID == b.ID && a.Tenant == b.Tenant && bytes.Equal(a.JSON, b.JSON)
}

// datas gives the events of a stream that comes in pieces of n bytes.
func datas(b []byte, n, most int) (out []string) {
	s := sse{max: most}
	for part := range slices.Chunk(b, n) {
		at := -1
		s.write(part, func(data []byte, big bool, end int) {
			if end <= at || end > len(part) {
				out = append(out, "an end out of order")
			}
			at = end
			out = append(out, told(data, big))
		})
	}
	s.end(func(data []byte, big bool) { out = append(out, told(data, big)) })
	return out
}

func told(data []byte, big bool) string {
	if big {
		return "too large"
	}
	return string(data)
}

func TestSSE(t *testing.T) {
	for in, want := range map[string]string{
		"data: a\n\ndata: b\n\n":                "a|b",
		"data: a\r\n\r\ndata:b\r\n\r\n":         "a|b",
		"data: a\r\rdata: b\r\r":                "a|b",
		"event: x\nid: 1\ndata: a\ndata: b\n\n": "a\nb",
		": a comment\n\ndata: a\n\n":            "a",
		"\ufeffdata: a\n\n":                     "a",
		"data\n\n":                              "",
		"data: a":                               "a",
		"data: a\n":                             "a",
		"retry: 1\n\n":                          "",
		"data: " + strings.Repeat("x", 200) + "\n\ndata: b\n\n": "too large|b",
	} {
		for n := 1; n <= len(in); n++ {
			if got := strings.Join(datas([]byte(in), n, 100), "|"); got != want {
				t.Errorf("%q in pieces of %d: %q", in, n, got)
			}
		}
	}
}

// FuzzSSE: however a stream is cut into pieces, it says the same, and what it says is read without harm.
func FuzzSSE(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n"), 3)
	f.Add([]byte("\ufeffevent: e\r\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\r\r\n: c\n\n"), 1)
	f.Add([]byte("data: {\"type\":\"response.completed\",\"response\":{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"y\"}]}]}}\n\n"), 7)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if len(b) == 0 {
			return
		}
		n = 1 + max(0, n)%len(b)
		if one, many := datas(b, len(b), 64), datas(b, n, 64); !slices.Equal(one, many) {
			t.Fatalf("%q in pieces of %d: %q, else %q", b, n, many, one)
		}
		for _, d := range []dialect{chat{}, responses{}} {
			tr := &Transport{o: DefaultOptions()}
			c := &call{t: tr, kind: d, stream: true, answer: answer{max: 1 << 20}}
			c.take(b, "", false)
			_ = c.answer.text()
			c.stream = false
			c.take(b, "", false)
		}
	})
}

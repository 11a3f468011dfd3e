package join

import (
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/ingest/call"
)

// Whatever stands in the topic: nothing breaks down, everything is told, dropped or a dead letter, and the position moves
// to the end.
func FuzzJoin(f *testing.F) {
	seed, err := encode(&call.Part{Format: "otlp", Kind: call.Model, Group: "g", Key: "k", Parent: "p", Messages: placed(2, call.Text("user", "q")), Metadata: map[string]any{"a": 1.0}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(seed))
	f.Add(string(seed) + "\n" + strings.Replace(string(seed), `"model"`, `"content"`, 1) + "\n" + `{"v":1,"told":[{"g":"g","o":9}]}`)
	f.Add(`{"v":1,"group":"g","key":"k","kind":"outer","parent":"k","n":[-1],"answers":[{"role":"","content":[{}]}],"tokens":[-1,null]}`)
	f.Add(`{"v":1,"kind":"x","group":"g","key":"k"}` + "\n" + `{"v":1,"kind":"context","group":"other","key":"k","time":"0001-01-01T00:00:00Z","claimed":"\u0000"}`)
	f.Fuzz(func(t *testing.T, values string) {
		w := newWorld(t, 1)
		w.step = 30 * time.Second
		for i, v := range strings.Split(values, "\n") {
			m := kafka.Message{Key: []byte("g"), Value: []byte(v)}
			if i%3 == 2 {
				m.Headers = []kafka.Header{{Key: headerTold, Value: []byte{'1'}}}
			}
			w.append(m)
			w.now = w.now.Add(20 * time.Second)
		}
		w.join()
		for _, r := range w.letters {
			if r.Reason == "" || r.Detail == "" || len(r.Detail) > 4096 {
				t.Errorf("%+v", r)
			}
		}
	})
}

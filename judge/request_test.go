package judge

import (
	"bytes"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/evenhand/evenhand/audit"
)

func request() Request {
	at := time.Date(2026, 11, 22, 17, 5, 0, 0, time.UTC)
	in := &audit.Interaction{ID: audit.DeriveID("x"), Tenant: "acme", Time: at, Digest: sha256.Sum256([]byte("text"))}
	return Of(in, Grey)
}

func TestRequestThereAndBack(t *testing.T) {
	r := request()
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(b)
	if err != nil || got != r {
		t.Errorf("%+v %v", got, err)
	}
	again := r
	again.Attempt = 2
	if r.ResultID() != got.ResultID() || again.ResultID() == r.ResultID() {
		t.Error("the answer's id")
	}
	r.Why = Sample
	if got.ResultID() != r.ResultID() {
		t.Error("the same attempt for another reason is the same answer")
	}
}

func TestWhatIsNoRequest(t *testing.T) {
	r := request()
	b, _ := r.Encode()
	good := string(b)
	for name, s := range map[string]string{
		"nothing": "", "null": "null", "an array": "[]", "not JSON": "evil text", "two": good + good, "another field": strings.Replace(good, "{", `{"text":"x",`, 1),
		"another tenant's result": strings.Replace(good, "acme", "evil", 1), "no tenant": strings.Replace(good, "acme", "", 1),
		"no attempt": strings.Replace(good, `"attempt":1`, `"attempt":0`, 1), "another attempt": strings.Replace(good, `"attempt":1`, `"attempt":2`, 1),
		"too many": strings.Replace(good, `"attempt":1`, `"attempt":1001`, 1), "a day": strings.Replace(good, "2026-11-22", "22.11.2026", 1),
		"a short digest": strings.Replace(good, `"content_digest":"98`, `"content_digest":"`, 1), "a long digest": strings.Replace(good, `"content_digest":"`, `"content_digest":"00`, 1),
	} {
		if s == good {
			t.Errorf("%s: the test changes nothing", name)
		}
		_, err := Decode([]byte(s))
		if audit.KindOf(err) != audit.KindInvalid {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "evil") {
			t.Errorf("%s: the error quotes the message", name)
		}
	}
}

func FuzzDecode(f *testing.F) {
	r := request()
	b, _ := r.Encode()
	f.Add(b)
	f.Add([]byte(`{"tenant_id":1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		again, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if same, err := Decode(again); err != nil || same != r || !bytes.Contains(again, []byte(r.ResultID().String())) {
			t.Errorf("%+v %+v %v", r, same, err)
		}
	})
}

package lane

import (
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/judge"
)

// A request that would be understood, but whose answer panics, is told from what is no request; what the panic said stays here.
func TestRejectedRequests(t *testing.T) {
	r := judge.Request{Tenant: "acme", ID: audit.DeriveID("a"), Attempt: 1}
	payload, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]string{string(payload): reasonError + " acme", "secret": reasonRequest + " ", "": reasonRequest + " "} {
		m := message.NewMessage("x", []byte(value))
		m.Metadata.Set(middleware.ReasonForPoisonedKey, "panic: secret")
		got := rejected(m)
		if got.Reason+" "+got.Tenant != want || got.Detail == "" || len(got.Header) != 0 || got.Key != nil || string(got.Value) != value {
			t.Errorf("%+v", got)
		}
	}
}

package gateway

import (
	"fmt"
	"testing"
)

func TestFind(t *testing.T) {
	c := DefaultConfig()
	c.Upstreams = []Upstream{
		{Name: "local", BaseURL: "http://127.0.0.1:1/v1", Models: []string{"local/"}, StripPrefix: true, APIKey: "k"},
		{Name: "other", BaseURL: "http://127.0.0.1:2/v1", Models: []string{"local/big", "o-"}, Provider: "acme"},
	}
	for _, tc := range []struct{ base, name, model, want string }{
		{"", "", "local/llama", "local/local llama true k"},
		{"", "", "local/big-1", "other/acme local/big-1 true "},
		{"", "", "gpt", "/ gpt false "},
		{"https://api.example:8443/v1", "", "gpt", "default/api.example gpt true "},
		{"https://api.openai.com/v1", "", "gpt", "default/openai gpt true "},
		{"https://NAME.openai.azure.com/openai/v1", "", "gpt", "default/azure.ai.openai gpt true "},
		{"http://[::1]:1/v1", "", "gpt", "default/::1 gpt true "},
		{"https://api.example/v1", "local", "llama3", "local/local llama3 true k"}, // as the provider named it
		{"https://api.example/v1", "gone", "o-1", "other/acme o-1 true "},
	} {
		c.BaseURL = tc.base
		u, as, ok, err := c.Find(tc.name, tc.model)
		if !ok {
			u = Upstream{}
		}
		if got := fmt.Sprint(u.Name, "/", u.Provider, " ", as, " ", ok, " ", u.APIKey.Reveal()); err != nil || got != tc.want {
			t.Errorf("%+v: got %q, %v", tc, got, err)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/internal/secret"
)

// doorsFlags say where the doors of a running process are and who asks.
type doorsFlags struct {
	DataDir string `help:"Ask the running 'evenhand up' of this data folder." placeholder:"DIR"`
	URL     string `help:"Address of a running process, instead of the one that 'evenhand up' left." name:"url" placeholder:"URL"`
	Token   string `help:"File that holds a token or API key; else EVENHAND_TOKEN, else http.api_key." name:"token-file" placeholder:"FILE" env:"EVENHAND_TOKEN_FILE"`
	Tenant  string `help:"For whom, where the credential is bound to no tenant." placeholder:"NAME"`
	JSON    bool   `help:"Print one JSON object a line." name:"json"`
}

// doors asks a running process over HTTP.
type doors struct {
	base, tenant string
	key          secret.Text
	http         *http.Client
}

func (f doorsFlags) doors(c *cli) (*doors, error) {
	if f.DataDir != "" {
		c.Set = append(c.Set, "data_dir="+f.DataDir)
	}
	s, err := c.load(defaultSettings())
	if err != nil {
		return nil, err
	}
	base := strings.TrimSuffix(f.URL, "/")
	if base == "" {
		up, ok := findRunning(s.DataDir)
		if !ok {
			return nil, notUp(s.DataDir, "name its folder with --data-dir, or an address with --url")
		}
		base = up.HTTP
	}
	key, _, err := credentialOf(s, f.Token)
	if err != nil {
		return nil, err
	}
	return &doors{base, f.Tenant, key, &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// send sends a request, body as JSON unless it is nil, and gives the answer, whatever its status; the caller closes it.
func (d *doors) send(ctx context.Context, method, path string, body any, headers ...string) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, d.base+path, content)
	if err != nil {
		return nil, &settingsError{fmt.Errorf("--url: %w", err)}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if d.key != "" {
		req.Header.Set("Authorization", "Bearer "+d.key.Reveal())
	}
	if d.tenant != "" {
		req.Header.Set(auth.TenantHeader, d.tenant)
	}
	return d.http.Do(req)
}

// refusal is the error that an answer tells. It closes the answer.
func (d *doors) refusal(res *http.Response) error {
	defer func() { _ = res.Body.Close() }()
	b, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err := told(b); err != nil {
		return err
	}
	return fmt.Errorf("%s answered %s", d.base, res.Status)
}

// told is the error in an answer of the doors, nil where it tells none.
func told(answer []byte) error {
	var a struct {
		Error struct {
			Code, Message string
			Details       json.RawMessage
		}
	}
	if json.Unmarshal(answer, &a) != nil || a.Error.Message == "" {
		return nil
	}
	return fmt.Errorf("%s: %s %s", a.Error.Code, a.Error.Message, a.Error.Details)
}

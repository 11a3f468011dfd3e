package llm

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

	"github.com/evenhand/evenhand/audit"
)

// Check asks the server for the names of its models, which costs nothing and carries no text, with the key that questions carry. It gives the
// names, none where the server does not tell them, as Azure's resources and some proxies do not. It fails as [Client.Complete] does: of
// audit.KindInvalid is a server that refuses the key, of KindUnavailable one that does not answer.
func (c *Client) Check(ctx context.Context) (models []string, err error) {
	if c.cfg.APIVersion != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, c.cfg.at(c.cfg.Model)+"models", http.NoBody)
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	q.Header.Set("User-Agent", "evenhand")
	if c.key != "" {
		q.Header.Set(c.cfg.carry(c.key))
	}
	res, err := c.http.Do(q)
	if err != nil {
		var no *refused
		if errors.As(err, &no) && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, no.status) {
			return nil, nil // it answers, and keeps no list
		}
		return nil, faultOf(ctx, err).public()
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body) // bounded by the transport
	if err != nil {
		return nil, faultOf(ctx, err).public()
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(text, &list) != nil {
		return nil, nil
	}
	for _, m := range list.Data {
		models = append(models, m.ID)
	}
	return models, nil
}

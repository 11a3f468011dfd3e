package gateway

import (
	"context"
	"io"
	"net/http"
)

// UpstreamHeader picks the provider whose models are listed; without it, the default's are.
const UpstreamHeader = "X-Evenhand-Upstream"

// models passes a provider's list of models on, or what it says of one.
func (g *Gateway) models(w http.ResponseWriter, r *http.Request) {
	began := g.Now()
	name, code := "", 0
	defer func() { g.Metrics.GatewayCall(name, code, "", g.Now().Sub(began)) }()
	deny := func(f *fault) { code = f.status; fail(w, f) }
	c, f := g.admit(r)
	if f != nil {
		deny(f)
		return
	}
	model := r.PathValue("model")
	up, prefix := g.pick(model)
	if n := r.Header.Get(UpstreamHeader); n != "" {
		up = nil
		for _, u := range g.ups {
			if u.Name == n {
				up = u
			}
		}
	}
	if up == nil && len(g.ups) == 1 {
		up = g.ups[0]
	}
	if up == nil {
		deny(&fault{status: http.StatusNotFound, kind: kindRequest, code: "evenhand_no_upstream", say: "no such upstream; name one in " + UpstreamHeader + ", or set gateway.default"})
		return
	}
	name = up.Name
	if up.StripPrefix {
		model = model[len(prefix):]
	}
	path, ok := modelPath(model)
	if !ok {
		deny(badRequest("model", "is no name of a model"))
		return
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), up.Timeout, errTimeout)
	defer cancel()
	req, err := up.request(ctx, http.MethodGet, path, nil, r, c)
	if err != nil {
		deny(&fault{status: http.StatusInternalServerError, kind: kindServer, code: "evenhand_internal", say: "internal error"})
		return
	}
	res, err := up.client.Do(req)
	if err != nil {
		deny(g.unreached(ctx, up, err))
		return
	}
	defer func() { _ = res.Body.Close() }()
	head, err := io.ReadAll(io.LimitReader(res.Body, g.cfg.ResponseBytes))
	if err != nil { // else half a list would look like one that is whole
		deny(broken(ctx, err))
		return
	}
	copyHeader(w.Header(), res.Header)
	code = res.StatusCode
	w.WriteHeader(code)
	_, _ = w.Write(head)
	_, _ = io.Copy(w, res.Body)
}

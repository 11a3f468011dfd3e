package engine

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
)

// web is the HTTP port that others see, Grafana above all. The engine's own stays private, because libchdb ends the
// whole process over what is no HTTP request there: a TLS handshake, half a line, a head that is too long. It passes requests
// and answers on as they are, waits for an engine that is being restarted, and stays at its port while the engine moves.
type web struct {
	server  *http.Server
	passing *http.Transport
	done    chan struct{}
}

// newWeb takes over the listener; close ends it. dial connects to the engine.
func newWeb(l net.Listener, dial func(context.Context) (net.Conn, error)) *web {
	w := &web{done: make(chan struct{})}
	w.passing = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, helloTimeout)
			defer cancel()
			return dial(ctx)
		},
		DisableCompression: true, // what the client accepts is asked for, nothing else
	}
	silent := log.New(io.Discard, "", 0)
	pass := &httputil.ReverseProxy{
		Transport: w.passing, FlushInterval: -1, ErrorLog: silent,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine"
			r.Out.URL.RawQuery, r.Out.Host = r.In.URL.RawQuery, r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the engine does not answer; it may be restarting", http.StatusBadGateway)
		},
	}
	w.server = &http.Server{
		ReadHeaderTimeout: helloTimeout, ErrorLog: silent,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if status := unfit(r); status != 0 {
				http.Error(w, http.StatusText(status), status)
				return
			}
			pass.ServeHTTP(w, r)
		}),
	}
	go func() {
		defer close(w.done)
		_ = w.server.Serve(l) // it ends with close
	}()
	return w
}

// What a request's header may hold, far less than what ends libchdb.
const (
	mostFields  = 100
	fieldsLimit = 64 << 10 // bytes
)

// unfit is the status of a request that would end the engine, 0 for one that would not.
func unfit(r *http.Request) int {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodOptions:
	default:
		return http.StatusMethodNotAllowed
	}
	fields, bytes := 1, len(r.Host)
	for name, values := range r.Header {
		for _, v := range values {
			fields++
			bytes += len(name) + len(v)
		}
	}
	if fields > mostFields || bytes > fieldsLimit {
		return http.StatusRequestHeaderFieldsTooLarge
	}
	return 0
}

// close ends the listener and every connection.
func (w *web) close() {
	_ = w.server.Close()
	w.passing.CloseIdleConnections()
	<-w.done
}

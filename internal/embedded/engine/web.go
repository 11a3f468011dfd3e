package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
)

// web is the HTTP port that others see, Grafana above all. The engine's own stays private, because libchdb ends the
// whole process over what is no HTTP request there: a TLS handshake, half a line, a head that is too long. It passes requests
// and answers on as they are, waits for an engine that is being restarted, and stays at its port while the engine moves. libchdb ends, too, over an
// answer that nobody hears: so a request is whole before it is passed on, and its answer is heard to the end, though the client may have gone.
type web struct {
	server  *http.Server
	passing *http.Transport
	done    chan struct{}
	end     context.CancelFunc // of all requests to the engine
}

// newWeb takes over the listener; close ends it. dial connects to the engine.
func newWeb(l net.Listener, dial func(context.Context) (net.Conn, error)) *web {
	ctx, end := context.WithCancel(context.Background())
	w := &web{done: make(chan struct{}), end: end}
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
		ModifyResponse: func(r *http.Response) error {
			r.Body = heard{r.Body}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the engine does not answer; it may be restarting", http.StatusBadGateway)
		},
	}
	w.server = &http.Server{
		ReadHeaderTimeout: helloTimeout, ErrorLog: silent,
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if status := unfit(r); status != 0 {
				http.Error(rw, http.StatusText(status), status)
				return
			}
			query, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, queryLimit))
			if err != nil {
				http.Error(rw, fmt.Sprintf("the request's body is cut off or longer than %d bytes", queryLimit), http.StatusBadRequest)
				return
			}
			r = r.WithContext(ctx)
			r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(query)), int64(len(query)), nil
			pass.ServeHTTP(rw, r)
		}),
	}
	go func() {
		defer close(w.done)
		_ = w.server.Serve(l) // it ends with close
	}()
	return w
}

// heard is an answer that is read to its end when it is closed.
type heard struct{ io.ReadCloser }

func (h heard) Close() error {
	_, _ = io.Copy(io.Discard, h.ReadCloser)
	return h.ReadCloser.Close()
}

// What a request's header may hold, far less than what ends libchdb.
const (
	mostFields  = 100
	fieldsLimit = 64 << 10 // bytes
	queryLimit  = 16 << 20 // bytes of a body
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
	w.end()
	w.passing.CloseIdleConnections()
	<-w.done
}

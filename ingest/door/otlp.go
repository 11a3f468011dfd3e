package door

import (
	"context"
	"errors"
	"mime"
	"net/http"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/auth"
	"github.com/evenhand/evenhand/ingest/call"
	"github.com/evenhand/evenhand/ingest/otlp"
	"github.com/evenhand/evenhand/internal/reply"
)

// Joiner takes what clients of other formats tell of calls. It returns after all parts are kept where they survive a
// restart; its errors are classed as a Producer's are, and hold a [call.Partial] where only some parts were refused. The
// same parts again change nothing.
type Joiner interface {
	Parts(ctx context.Context, parts []call.Part) error
}

// otlpAnswer writes faults as OTLP/HTTP has them: google.rpc.Status, in protobuf unless JSON was sent.
// https://opentelemetry.io/docs/specs/otlp/#failures-1
type otlpAnswer struct {
	http.ResponseWriter
	asJSON bool
}

// Unwrap is for http.MaxBytesReader and http.ResponseController.
func (o *otlpAnswer) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// fault implements faulter.
func (o *otlpAnswer) fault(f *fault) {
	if o.asJSON { // Status, and what all doors say
		reply.JSON(o.ResponseWriter, f.Status, struct {
			Code    int32  `json:"code"`
			Message string `json:"message"`
			Error   *fault `json:"error"`
		}{otlp.Code(f.Status), f.Message, f})
		return
	}
	reply.Bytes(o.ResponseWriter, f.Status, "application/x-protobuf", otlp.Fault(f.Status, f.Message))
}

// otlp serves one of OTLP's signals. Basic lets Langfuse's pair of keys in: the secret key is the credential, the public
// key is not looked at. Only this path takes that: elsewhere a browser could be made to send it.
func (s *server) otlp(path string, f call.Format, basic bool) http.Handler {
	return s.route(path, http.MethodPost, func(w http.ResponseWriter, r *http.Request) {
		out := &otlpAnswer{w, otlp.IsJSON(r.Header.Get("Content-Type"), nil)}
		if _, secret, ok := r.BasicAuth(); ok && basic && len(r.Header.Values("Authorization")) == 1 {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		s.guarded(auth.Ingest, func(w http.ResponseWriter, r *http.Request, body []byte) *fault { return s.parts(out, r, f, body) })(out, r)
	})
}

// parts decodes a body and hands on what it tells. What is at fault in it by itself is told as a partial success, as
// sending it again would not mend it.
func (s *server) parts(w *otlpAnswer, r *http.Request, f call.Format, body []byte) *fault {
	tenant, refuse := tenant(r)
	if refuse != nil {
		return refuse
	}
	kind := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(kind); err != nil || media != "application/x-protobuf" && media != "application/json" {
		return reply.NewFault(http.StatusUnsupportedMediaType, reply.UnsupportedMedia, "wants Content-Type application/x-protobuf or application/json", nil)
	}
	parts, err := s.decode(f, call.Payload{Body: body, ContentType: kind, Header: r.Header.Get, Tenant: tenant, Received: s.Now()})
	var some *call.Partial
	if err != nil && !errors.As(err, &some) {
		return reply.NewFault(http.StatusBadRequest, reply.BadRequest, say(err), nil)
	}
	if len(parts) > 0 {
		var refused *call.Partial
		if err := s.Join.Parts(r.Context(), parts); errors.As(err, &refused) {
			n := refused.Refused
			if some != nil {
				n += some.Refused
			}
			some = &call.Partial{Refused: n, Why: refused.Why}
		} else if err != nil {
			s.Logger.Warn("parts of calls not kept", "kind", string(audit.KindOf(err)), "parts", len(parts))
			if audit.KindOf(err) == audit.KindInternal { // clients try again after 503 and drop the data after 500
				err = audit.E("door", audit.KindUnavailable, err)
			}
			return notServed(err, nil)
		}
	}
	media := "application/x-protobuf"
	if w.asJSON {
		media = "application/json"
	}
	reply.Bytes(w, http.StatusOK, media, otlp.Answer(f, some, w.asJSON))
	return nil
}

// decode lets as many payloads be read at once as there are processors: each may take much memory while it is.
func (s *server) decode(f call.Format, p call.Payload) ([]call.Part, error) {
	s.reading <- struct{}{}
	defer func() { <-s.reading }()
	return f.Parts(p)
}

// say is the cause of a decoder's error, which quotes nothing.
func say(err error) string {
	var e *audit.Error
	if errors.As(err, &e) {
		return e.Err.Error()
	}
	return err.Error()
}

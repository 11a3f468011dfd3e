package join

import (
	"strings"
	"sync"
	"time"
)

const (
	maxServices = 100       // that the log names; further ones are "other"
	sayAgain    = time.Hour // between two warnings about a service
)

// silent remembers which services tell calls without texts.
type silent struct {
	mu       sync.Mutex
	services map[string]time.Time // when a warning was last written
}

// name gives the service's name for people, and whether it is time to warn about it.
func (s *silent) name(service string, now time.Time) (name string, warn bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if service == "" {
		service = "unknown"
	}
	last, known := s.services[service]
	if !known && len(s.services) >= maxServices {
		service = "other"
		last = s.services[service]
	}
	if s.services == nil {
		s.services = map[string]time.Time{}
	}
	if now.Sub(last) < sayAgain {
		return service, false
	}
	s.services[service] = now
	return service, true
}

// withheld counts a call without texts, and tells the operator once an hour and service what to do: its client keeps them back, or tells
// them in a form that is not read.
func (e *events) withheld(m *made) {
	name, warn := e.silent.name(m.service, e.Now())
	e.Observer.Withheld()
	switch {
	case !warn:
	case len(m.unread) > 0:
		e.Logger.Warn("texts of a form that is not read", "service", name, "format", m.format, "attributes", strings.Join(m.unread, ", "),
			"mend", "send the texts as gen_ai.input.messages and gen_ai.output.messages, or in another form of docs/otlp.md")
	default:
		e.Logger.Warn("content capture is off", "service", name, "format", m.format, "mend", Mend(m.format, name))
	}
}

// Mend says to people how a service tells the texts of its calls, too.
func Mend(format, service string) string {
	how := "the client's option that records prompts and responses"
	switch {
	case strings.HasPrefix(format, "otlp"):
		how = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY (OpenTelemetry), TRACELOOP_TRACE_CONTENT=true (OpenLLMetry), OPENINFERENCE_HIDE_INPUTS=false and OPENINFERENCE_HIDE_OUTPUTS=false (OpenInference) or recordInputs and recordOutputs (Vercel AI SDK)"
	case strings.HasPrefix(format, "litellm"):
		how = "turn_off_message_logging: false in litellm_settings"
	}
	return "content capture is off in service " + service + ": set " + how
}

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

// withheld counts a call without texts, and tells the operator once an hour and service what to do.
func (e *events) withheld(t told) {
	name, warn := e.silent.name(t.service, e.Now())
	e.Observer.Withheld()
	if warn {
		e.Logger.Warn("content capture is off", "service", name, "format", t.format, "mend", Mend(t.format, name))
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

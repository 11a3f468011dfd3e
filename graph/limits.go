package graph

import (
	"errors"
	"fmt"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// Config is what an operator may set of GraphQL. Start from DefaultConfig.
type Config struct {
	Cost          int           `koanf:"cost"`           // points of one operation; see costs.go
	Depth         int           `koanf:"depth"`          // levels of fields
	Aliases       int           `koanf:"aliases"`        // renamed fields, fragments spread
	Fields        int           `koanf:"fields"`         // fields of a document, fragments spread
	Directives    int           `koanf:"directives"`     // @skip and @include of a document, fragments spread
	Tokens        int           `koanf:"tokens"`         // of a document, comments included
	Nesting       int           `koanf:"nesting"`        // levels of JSON in a body, and of lists and objects in a document
	BodyBytes     int64         `koanf:"body_bytes"`     // of a request
	Timeout       time.Duration `koanf:"timeout"`        // of a query or a mutation
	InFlight      int           `koanf:"in_flight"`      // queries and mutations served at once
	Introspection bool          `koanf:"introspection"`  // answer __schema and __type
	Playground    bool          `koanf:"playground"`     // a page to try queries on, on a loopback address only
	Subscribers   int           `koanf:"subscribers"`    // streams of one tenant at once
	StreamBuffer  int           `koanf:"stream_buffer"`  // interactions that wait for a slow reader before its stream ends
	StreamMax     time.Duration `koanf:"stream_max"`     // a stream ends then
	StreamPoll    time.Duration `koanf:"stream_poll"`    // how often the store is asked for what was flagged
	KeepAlive     time.Duration `koanf:"keep_alive"`     // between signs of life on a quiet stream
	ServedAtOnce  int           `koanf:"served_at_once"` // streams of all tenants at once
}

// DefaultConfig are the limits of the documentation.
func DefaultConfig() Config {
	return Config{
		Cost: 300, Depth: 15, Aliases: 30, Fields: 1000, Directives: 50, Tokens: 5000, Nesting: 40, BodyBytes: 1 << 20, Timeout: 10 * time.Second, InFlight: 64,
		Subscribers: 20, StreamBuffer: 256, StreamMax: time.Hour, StreamPoll: time.Second, KeepAlive: 15 * time.Second, ServedAtOnce: 500,
	}
}

// Validate reports every fault at once under the operator's keys.
func (c Config) Validate() error {
	var errs []error
	for _, l := range []struct {
		key            string
		n, least, most int64
	}{
		{"cost", int64(c.Cost), 10, 100_000}, {"depth", int64(c.Depth), 3, 50}, {"aliases", int64(c.Aliases), 0, 1000}, {"fields", int64(c.Fields), 10, 5000},
		{"directives", int64(c.Directives), 0, 1000}, {"tokens", int64(c.Tokens), 100, 50_000}, {"nesting", int64(c.Nesting), 8, 200},
		{"body_bytes", c.BodyBytes, 1 << 10, 16 << 20}, {"in_flight", int64(c.InFlight), 1, 10_000},
		{"subscribers", int64(c.Subscribers), 0, 10_000}, {"stream_buffer", int64(c.StreamBuffer), 1, 100_000}, {"served_at_once", int64(c.ServedAtOnce), 0, 100_000},
	} {
		if l.n < l.least || l.n > l.most {
			errs = append(errs, fmt.Errorf("graphql.%s: %d is not in %d..%d", l.key, l.n, l.least, l.most))
		}
	}
	for _, d := range []struct {
		key            string
		v, least, most time.Duration
	}{
		{"timeout", c.Timeout, 100 * time.Millisecond, 5 * time.Minute}, {"stream_max", c.StreamMax, time.Second, 24 * time.Hour},
		{"stream_poll", c.StreamPoll, 100 * time.Millisecond, time.Minute}, {"keep_alive", c.KeepAlive, time.Second, 5 * time.Minute},
	} {
		if d.v < d.least || d.v > d.most {
			errs = append(errs, fmt.Errorf("graphql.%s: %v is not in %v..%v", d.key, d.v, d.least, d.most))
		}
	}
	return errors.Join(errs...)
}

// beyond is the refusal of an operation that passes a limit.
func beyond(limit string, found, most int, advice string) *gqlerror.Error {
	e := refuse(BadUserInput, "%s: %d; at most %d are taken (graphql.%s)%s", limitWords[limit], found, most, limit, advice)
	e.Extensions["limit"], e.Extensions["found"], e.Extensions["most"] = limit, found, most
	return e
}

var limitWords = map[string]string{
	"cost": "points that this operation costs", "depth": "levels of fields", "aliases": "aliases", "fields": "fields, fragments spread",
	"directives": "directives", "tokens": "tokens of the document", "nesting": "levels of a list or an object",
}

// refuse is an error of the request itself.
func refuse(code Code, format string, args ...any) *gqlerror.Error {
	e := gqlerror.Errorf(format, args...)
	e.Extensions = map[string]any{"code": string(code)}
	return e
}

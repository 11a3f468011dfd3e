package graph

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/graph/model"
	"github.com/evenhand/evenhand/store"
)

// Code tells machines what went wrong (extensions.code).
type Code string

// The codes.
const (
	Unauthenticated    Code = "UNAUTHENTICATED"      // no valid credential
	Forbidden          Code = "FORBIDDEN"            // not with this credential
	NotFound           Code = "NOT_FOUND"            // the caller's tenant has none
	BadUserInput       Code = "BAD_USER_INPUT"       // the message names the field
	Conflict           Code = "CONFLICT"             // another's answer was first, and holds
	BiasAnalysisFailed Code = "BIAS_ANALYSIS_FAILED" // an analysis that was asked for did not come about
	Overloaded         Code = "OVERLOADED"           // too much at once: later
	Unavailable        Code = "UNAVAILABLE"          // something that we need is away: later
	Internal           Code = "INTERNAL"             // a fault of ours, in the log
)

// fixed are the messages of codes whose cause is for operators.
var fixed = map[Code]string{
	Overloaded:  "too much is asked for at once; try again later",
	Unavailable: "a part of the service does not answer; try again later",
	Internal:    "something went wrong inside; it is logged",
}

// tooLong is what is read of a statement that was broken off with its operation: nothing is away.
const tooLong = "the operation took longer than it may (graphql.timeout): ask for less or for a shorter time, or try again later"

// Fault is an error with its code and what the caller reads.
type Fault struct {
	Code Code
	Text string
}

func (f *Fault) Error() string { return f.Text }

// Is makes a fault without text the kind of all that have its code.
func (f *Fault) Is(target error) bool {
	t, ok := target.(*Fault)
	return ok && t.Code == f.Code && (t.Text == "" || t.Text == f.Text)
}

var (
	errUnauthenticated = &Fault{Unauthenticated, "a valid credential is wanted: a bearer token or an API key"}
	errNotFound        = &Fault{NotFound, "no such interaction"}
)

func forbidden(format string, args ...any) error {
	return &Fault{Forbidden, fmt.Sprintf(format, args...)}
}

// invalid names the field and what is wrong with it.
func invalid(field, format string, args ...any) error {
	return &Fault{BadUserInput, field + ": " + fmt.Sprintf(format, args...)}
}

// coded classes an error and gives what the caller reads of it.
func coded(err error) (Code, string) {
	var f *Fault
	var classed *audit.Error
	switch {
	case errors.As(err, &f):
		return f.Code, f.Text
	case errors.Is(err, store.ErrNotFound):
		return NotFound, errNotFound.Text
	case !errors.As(err, &classed) && errors.Is(err, context.Canceled):
		return Unavailable, fixed[Unavailable]
	}
	switch audit.KindOf(err) {
	case audit.KindInvalid:
		if store.OfServer(err) { // our statement was at fault, not the caller
			return Internal, fixed[Internal]
		}
		return BadUserInput, said(classed)
	case audit.KindOverloaded:
		if classed != nil && !store.OfServer(err) { // ours, which says what to do
			return Overloaded, said(classed)
		}
		return Overloaded, fixed[Overloaded]
	case audit.KindUnavailable:
		return Unavailable, fixed[Unavailable]
	}
	return Internal, fixed[Internal]
}

// said is what a fault of the caller says, without the operations that passed it on.
func said(e *audit.Error) string {
	for {
		inner, ok := e.Err.(*audit.Error) //nolint:errorlint // only what directly wraps
		if !ok {
			return e.Err.Error()
		}
		e = inner
	}
}

// Presenter turns errors into what callers read. What is no fault of theirs is logged with its class and
// path, and they read a fixed sentence.
func Presenter(log *slog.Logger) graphql.ErrorPresenterFunc {
	return func(ctx context.Context, err error) *gqlerror.Error {
		out := &gqlerror.Error{Path: graphql.GetPath(ctx)}
		cause := err
		var g *gqlerror.Error
		if errors.As(err, &g) {
			out.Path, out.Locations, out.Rule = g.Path, g.Locations, g.Rule
			out.Extensions = maps.Clone(g.Extensions)
			cause = g.Err
		}
		code, text := Internal, fixed[Internal]
		switch given, _ := out.Extensions["code"].(string); {
		case cause != nil:
			code, text = coded(cause)
		case given == "GRAPHQL_PARSE_FAILED", given == "GRAPHQL_VALIDATION_FAILED":
			code, text = BadUserInput, g.Message
		case given != "":
			code, text = Code(given), g.Message
		}
		if code == Unavailable && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			code, text = Overloaded, tooLong
		}
		if out.Message = text; out.Extensions == nil {
			out.Extensions = map[string]any{}
		}
		out.Extensions["code"] = string(code)
		logFault(ctx, log, code, text, out.Path.String(), cause)
		return out
	}
}

// logFault logs what the caller reads a fixed sentence of, and what took too long, unless the log knows of it.
func logFault(ctx context.Context, log *slog.Logger, code Code, text, path string, cause error) {
	level := slog.LevelError
	if text == tooLong {
		level = slog.LevelWarn
	} else if text != fixed[code] {
		return
	}
	if told(cause) || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	log.LogAttrs(ctx, level, "a field of a GraphQL answer failed", slog.String("code", string(code)), slog.String("path", path), slog.String("error", loggable(cause)))
}

// told tells whether the log knows of an error: of a panic, or by another field that needed the same.
func told(err error) bool {
	var f *Fault
	var s *model.Shared
	return errors.As(err, &f) || errors.As(err, &s) && !s.First()
}

// loggable is an error's text where that is ours and so holds nothing of people, else its type.
func loggable(err error) string {
	var classed *audit.Error
	if errors.As(err, &classed) {
		return classed.Error()
	}
	return fmt.Sprintf("%T", err)
}

// Recoverer turns a panic into an error of ours. What panicked may hold text, so only its type is kept.
func Recoverer(log *slog.Logger) graphql.RecoverFunc {
	return func(ctx context.Context, what any) error {
		log.LogAttrs(ctx, slog.LevelError, "a resolver panicked", slog.String("path", graphql.GetPath(ctx).String()), slog.String("type", fmt.Sprintf("%T", what)))
		return &Fault{Internal, fixed[Internal]}
	}
}

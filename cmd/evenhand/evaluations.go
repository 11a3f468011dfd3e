package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sinks"
	"github.com/evenhand/evenhand/sinks/evaluations"
)

// evaluationsSettings say where events gen_ai.evaluation.result go.
type evaluationsSettings struct {
	Endpoint string      `koanf:"endpoint"` // base address of an OTLP/HTTP collector; empty: nothing is sent
	Headers  secret.Text `koanf:"headers"`  // NAME=VALUE,…; often a key
	Only     string      `koanf:"only"`     // flagged or all
	Queue    int         `koanf:"queue"`    // events that wait at most
}

func defaultEvaluations() evaluationsSettings {
	c := evaluations.DefaultConfig()
	return evaluationsSettings{Only: c.Only, Queue: c.Queue}
}

func (s evaluationsSettings) config() evaluations.Config {
	return evaluations.Config{Endpoint: s.Endpoint, Headers: s.Headers.Reveal(), Only: s.Only, Queue: s.Queue}
}

// sender makes the sender of evaluations, nil without an endpoint. count may be nil.
func (s evaluationsSettings) sender(ctx context.Context, count func(string, int), log *slog.Logger) (*evaluations.Sender, error) {
	out, err := evaluations.New(ctx, s.config(), evaluations.Options{Version: version(), Count: count, Logger: log})
	if err != nil {
		return nil, &settingsError{errors.Unwrap(err)}
	}
	return out, nil
}

// observer is what the pipeline tells of: metrics, and evaluations where they are sent.
func (st *stack) observer() pipeline.Observer {
	if st.evaluations == nil {
		return st.metrics
	}
	return teller{st.metrics, st.evaluations}
}

// tellVerdict tells of one later verdict; nil where nothing is sent.
func (st *stack) tellVerdict() func(*audit.Record) {
	if st.evaluations == nil {
		return nil
	}
	return st.evaluations.Record
}

// lastEvaluations bounds what the end of a process waits for: the store and the log need the rest of its time.
const lastEvaluations = 3 * time.Second

func closeEvaluations(ctx context.Context, s *evaluations.Sender) error {
	ctx, cancel := context.WithTimeout(ctx, lastEvaluations)
	defer cancel()
	return s.Close(ctx)
}

// teller tells of what the pipeline has written.
type teller struct {
	*obs.Metrics
	to *evaluations.Sender
}

// Written implements pipeline.Observer.
func (t teller) Written(b *sinks.Batch, s pipeline.Stats) {
	t.Metrics.Written(b, s)
	t.to.Records(b.Records)
}

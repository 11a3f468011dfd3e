package main

import (
	"context"
	"net/http"
	"slices"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/gateway"
	"github.com/evenhand/evenhand/guard"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/judge/mend"
	"github.com/evenhand/evenhand/judge/replay"
)

// startGateway makes what stands between applications and providers of models, where it is switched on.
func (st *stack) startGateway(judge guard.Judge) (err error) {
	s := st.settings
	if !s.Gateway.Enabled {
		return nil
	}
	var people guard.Gates
	if st.gates != nil {
		people = inlineGates{st.gates}
	}
	var validate func(context.Context, *audit.Interaction) (*replay.Check, error)
	if replays(s.Gateway) {
		if _, err := st.asking.evaluator(); err != nil {
			return err
		}
		validate = (&mend.Validator{Evaluator: st.asking, Analyze: st.analyze}).Check
	}
	inline := guard.New(st.analyzer, guard.Config{Judging: s.Gateway.Judging(judge), Logger: st.log})
	st.gateway, err = gateway.New(s.Gateway, gateway.Deps{
		Gates: people, Validate: validate, Guard: inline, Mask: inline,
		Auth: st.auth, Open: !s.asks(),
		Decoder: ingest.NewDecoder(s.decoder()), Producer: &frontDoor{st}, Message: kafkaconn.MaxMessage,
		Metrics: st.metrics, Logger: st.log,
	})
	if err != nil {
		return &settingsError{err}
	}
	st.metrics.FollowUpstreams(s.Gateway.Names())
	return nil
}

// replays tells whether the gateway may ask again.
func replays(c gateway.Config) bool {
	return c.Replay.Rounds > 0 || slices.Contains(c.Overrides, "replay")
}

// mountGateway serves it beside the doors.
func (st *stack) mountGateway(mux *http.ServeMux) {
	h := st.gateway.Handler()
	for _, path := range append([]string{gateway.PathChat, gateway.PathResponses, gateway.PathModels, gateway.PathModels + "/"}, gateway.Unserved...) {
		mux.Handle(path, h)
	}
}

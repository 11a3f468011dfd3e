package client

import "context"

// Shipped are the rules of NewInProcess: compiled once for all tests.
var Shipped = shipped

// Decide judges one event, as a transport does.
func Decide(ctx context.Context, d Decider, e *Event, o *Options) (stop, err error) {
	_, stop, err = d.decide(ctx, e, o, o.asker("bench"))
	return stop, err
}

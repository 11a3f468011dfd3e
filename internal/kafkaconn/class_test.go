package kafkaconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
	"github.com/segmentio/kafka-go/protocol/produce"

	"github.com/evenhand/evenhand/audit"
)

func TestClass(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want audit.Kind
	}{
		{nil, ""},
		{kafka.MessageSizeTooLarge, audit.KindInvalid},
		{kafka.MessageTooLargeError{}, audit.KindInvalid},
		{kafka.PolicyViolation, audit.KindOverloaded},
		{fmt.Errorf("wrapped: %w", kafka.PolicyViolation), audit.KindOverloaded},
		{kafka.LeaderNotAvailable, audit.KindUnavailable},
		{kafka.RequestTimedOut, audit.KindUnavailable},
		{kafka.Unknown, audit.KindUnavailable},
		{kafka.BrokerNotAvailable, audit.KindUnavailable},
		{produce.NewError(protocol.NewErrNoLeader("t", 1)), audit.KindUnavailable}, // the client's own: its picture of the cluster is behind
		{fetch.NewError(protocol.NewErrNoPartition("t", 1)), audit.KindUnavailable},
		{fmt.Errorf("wrapped: %w", produce.NewError(protocol.NewErrNoTopic("t"))), audit.KindUnavailable},
		{kafka.TopicAuthorizationFailed, audit.KindInternal},
		{io.EOF, audit.KindUnavailable},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, audit.KindUnavailable},
		{context.DeadlineExceeded, audit.KindUnavailable},
		{errors.New("something else"), audit.KindInternal},
		{audit.E("op", audit.KindInvalid, errors.New("classed before")), audit.KindInvalid},
		{kafka.WriteErrors{nil, kafka.MessageSizeTooLarge, nil}, audit.KindInvalid},
		{kafka.WriteErrors{kafka.MessageSizeTooLarge, kafka.LeaderNotAvailable}, audit.KindUnavailable},
		{kafka.WriteErrors{kafka.PolicyViolation, kafka.LeaderNotAvailable}, audit.KindOverloaded},
	} {
		if got := Class(tc.err); got != tc.want {
			t.Errorf("%v is %q, want %q", tc.err, got, tc.want)
		}
	}
	if err := E("op", nil); err != nil {
		t.Errorf("E of nil: %v", err)
	}
	if err := E("op", kafka.PolicyViolation); audit.KindOf(err) != audit.KindOverloaded || !errors.Is(err, kafka.PolicyViolation) {
		t.Errorf("E: %v", err)
	}
}

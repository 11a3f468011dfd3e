package kafkaconn

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"github.com/evenhand/evenhand/audit"
)

// Class tells what to do about an error of kafka-go:
//
//   - invalid: the message is at fault (too large, refused by the broker's validation);
//   - overloaded: the log is full or a quota is reached (POLICY_VIOLATION is how the embedded broker
//     and hosted Kafka say so), slow the sender down;
//   - unavailable: brokers, leaders or the network, or an ended context: retry with back-off;
//   - internal: everything else.
//
// Of several errors at once the one that needs the most care wins, in the order of the list above
// but with invalid last, so that a retry never stops because one message of many is bad.
func Class(err error) audit.Kind {
	var classed *audit.Error
	var many kafka.WriteErrors
	switch {
	case err == nil:
		return ""
	case errors.As(err, &classed):
		return classed.Kind
	case errors.As(err, &many):
		return classMany(many)
	}
	var tooLarge kafka.MessageTooLargeError
	var code kafka.Error
	var network net.Error
	switch {
	case errors.As(err, &tooLarge):
		return audit.KindInvalid
	case errors.As(err, &code):
		return classCode(code)
	case errors.Is(err, protocol.ErrNoTopic), errors.Is(err, protocol.ErrNoPartition), errors.Is(err, protocol.ErrNoLeader),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return audit.KindUnavailable
	}
	return audit.KindInternal
}

// E wraps err as an [audit.Error] of its class; nil stays nil.
func E(op string, err error) error { return audit.E(op, Class(err), err) }

func classCode(code kafka.Error) audit.Kind {
	switch code {
	case kafka.MessageSizeTooLarge, kafka.RecordListTooLarge, kafka.InvalidRecord, kafka.InvalidTimestamp:
		return audit.KindInvalid
	case kafka.PolicyViolation, kafka.ThrottlingQuotaExceeded:
		return audit.KindOverloaded
	case kafka.Unknown, // what the embedded broker answers when its disk is full
		kafka.BrokerNotAvailable: // the client's own, before it knows that broker's address
		return audit.KindUnavailable
	}
	if code.Temporary() || code.Timeout() {
		return audit.KindUnavailable
	}
	return audit.KindInternal
}

func classMany(errs kafka.WriteErrors) audit.Kind {
	rank := map[audit.Kind]int{"": 0, audit.KindInvalid: 1, audit.KindInternal: 2, audit.KindUnavailable: 3, audit.KindOverloaded: 4}
	var worst audit.Kind
	for _, err := range errs {
		if k := Class(err); rank[k] > rank[worst] {
			worst = k
		}
	}
	return worst
}

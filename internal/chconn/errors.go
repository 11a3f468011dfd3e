package chconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	ch "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"

	"github.com/evenhand/evenhand/audit"
)

// kinds classes the server's codes. A code that is not here is internal: a bug, a missing table or
// a right that is not granted must never make good data a dead letter.
var kinds = map[ch.Error]audit.Kind{
	// The values themselves: sending them again cannot work.
	ch.ErrCannotParseText:                           audit.KindInvalid,
	ch.ErrSizeOfFixedStringDoesntMatch:              audit.KindInvalid,
	ch.ErrCannotParseEscapeSequence:                 audit.KindInvalid,
	ch.ErrCannotParseQuotedString:                   audit.KindInvalid,
	ch.ErrCannotParseInputAssertionFailed:           audit.KindInvalid,
	ch.ErrCannotParseDate:                           audit.KindInvalid,
	ch.ErrCannotParseDatetime:                       audit.KindInvalid,
	ch.ErrArgumentOutOfBound:                        audit.KindInvalid,
	ch.ErrCannotConvertType:                         audit.KindInvalid,
	ch.ErrCannotParseNumber:                         audit.KindInvalid,
	ch.ErrTooLargeArraySize:                         audit.KindInvalid,
	ch.ErrTooLargeStringSize:                        audit.KindInvalid,
	ch.ErrSizesOfArraysDoesntMatch:                  audit.KindInvalid,
	ch.ErrValueIsOutOfRangeOfDataType:               audit.KindInvalid,
	ch.ErrCannotInsertNullInOrdinaryColumn:          audit.KindInvalid,
	ch.ErrSizesOfNestedColumnsAreInconsistent:       audit.KindInvalid,
	ch.ErrCannotParseUUID:                           audit.KindInvalid,
	ch.ErrDecimalOverflow:                           audit.KindInvalid,
	ch.ErrCannotParseDomainValueFromString:          audit.KindInvalid,
	ch.ErrCannotParseBool:                           audit.KindInvalid,
	ch.ErrViolatedConstraint:                        audit.KindInvalid,
	ch.ErrCannotParseIpv4:                           audit.KindInvalid,
	ch.ErrCannotParseIpv6:                           audit.KindInvalid,
	ch.ErrUnknownElementOfEnum:                      audit.KindInvalid,
	ch.ErrCannotInsertValueOfDifferentSizeIntoTuple: audit.KindInvalid,

	// The server cannot now, and may later.
	ch.ErrCannotReadFromSocket:              audit.KindUnavailable,
	ch.ErrCannotWriteToSocket:               audit.KindUnavailable,
	ch.ErrTimeoutExceeded:                   audit.KindUnavailable,
	ch.ErrCannotAllocateMemory:              audit.KindUnavailable,
	ch.ErrNoFreeConnection:                  audit.KindUnavailable,
	ch.ErrSocketTimeout:                     audit.KindUnavailable,
	ch.ErrNetworkError:                      audit.KindUnavailable,
	ch.ErrNoZookeeper:                       audit.KindUnavailable,
	ch.ErrAborted:                           audit.KindUnavailable,
	ch.ErrMemoryLimitExceeded:               audit.KindUnavailable,
	ch.ErrTableIsReadOnly:                   audit.KindUnavailable,
	ch.ErrNotEnoughSpace:                    audit.KindUnavailable,
	ch.ErrNoActiveReplicas:                  audit.KindUnavailable,
	ch.ErrAllConnectionTriesFailed:          audit.KindUnavailable,
	ch.ErrTooFewLiveReplicas:                audit.KindUnavailable,
	ch.ErrUnsatisfiedQuorumForPreviousWrite: audit.KindUnavailable,
	ch.ErrUnknownStatusOfInsert:             audit.KindUnavailable,
	ch.ErrAllReplicasAreStale:               audit.KindUnavailable,
	ch.ErrQueryWasCancelled:                 audit.KindUnavailable,
	ch.ErrSystemError:                       audit.KindUnavailable,
	ch.ErrCannotScheduleTask:                audit.KindUnavailable,
	ch.ErrDeadlockAvoided:                   audit.KindUnavailable,
	ch.ErrS3Error:                           audit.KindUnavailable,
	ch.ErrKeeperException:                   audit.KindUnavailable,

	// We ask too much of it.
	ch.ErrTooManySimultaneousQueries: audit.KindOverloaded,
	ch.ErrTooManyParts:               audit.KindOverloaded,
}

// Lost tells that no server answered: it could not be reached, hangs, or the connection ended. How the error was classed
// on its way is not looked at.
func Lost(err error) bool {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		syscall.EPIPE, syscall.ECONNRESET, syscall.ECONNREFUSED, clickhouse.ErrConnectionClosed} {
		if errors.Is(err, end) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

// Class tells what to do about an error of clickhouse-go or of [Open]: invalid when the values are
// at fault, unavailable when the server or the way to it is, overloaded when it has too much to do,
// and internal for all else, wrong SQL and missing rights included.
func Class(err error) audit.Kind {
	var (
		classed *audit.Error
		server  *clickhouse.Exception
		value   *column.Error
	)
	switch {
	case err == nil:
		return ""
	case errors.As(err, &classed):
		return classed.Kind
	case errors.As(err, &server):
		if k, ok := kinds[ch.Error(server.Code)]; ok {
			return k
		}
		return audit.KindInternal
	case errors.Is(err, clickhouse.ErrAcquireConnTimeout):
		return audit.KindOverloaded
	case Lost(err):
		return audit.KindUnavailable
	case errors.As(err, &value):
		return audit.KindInvalid
	}
	return audit.KindInternal
}

// Code gives the server's error code, 0 when err did not come from the server.
func Code(err error) int {
	var server *clickhouse.Exception
	if errors.As(err, &server) {
		return int(server.Code)
	}
	return 0
}

// Whole gives the server's code and message as it sent them, nil when err did not come from the server. The message may
// repeat the statement and values: it is for whoever wrote the statement, never for a log.
func Whole(err error) error {
	var server *clickhouse.Exception
	if !errors.As(err, &server) {
		return nil
	}
	return fmt.Errorf("ClickHouse code %d: %s", server.Code, strings.ToValidUTF8(server.Message, ""))
}

// Wrap classes err and puts the operation before it. The server's message is shown up to the first
// value it quotes (see [Redact]), because it may repeat what was sent; errors.As still finds the
// exception, whose own Error method shows it whole. Already classed errors only gain the operation.
func Wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	kind := Class(err)
	var classed *audit.Error
	if !errors.As(err, &classed) {
		err = &quiet{err}
	}
	return audit.E(op, kind, err)
}

// quiet shows an error without the values it quotes.
type quiet struct{ err error }

func (q *quiet) Unwrap() error { return q.err }

func (q *quiet) Error() string {
	var server *clickhouse.Exception
	if errors.As(q.err, &server) {
		return fmt.Sprintf("ClickHouse code %d: %s", server.Code, Redact(server.Message))
	}
	return Redact(q.err.Error())
}

// maxMessage bounds what is shown of a message, in bytes.
const maxMessage = 300

// Redact cuts a message before the first quoted value, and at 300 bytes. An apostrophe inside a word
// is no quote.
func Redact(msg string) string {
	for i := range len(msg) {
		if i >= maxMessage || msg[i] == '\'' && (i == 0 || !letter(msg[i-1])) {
			return strings.ToValidUTF8(msg[:i], "") + "…"
		}
	}
	return strings.ToValidUTF8(msg, "")
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

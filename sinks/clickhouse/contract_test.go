package clickhouse_test

import (
	"testing"

	"github.com/evenhand/evenhand/sinks"
	chsink "github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/sinktest"
)

func TestContract(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinks.Store {
		conn, db := fresh(t)
		return chsink.New(conn, db, chsink.Options{})
	})
}

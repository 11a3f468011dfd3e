package kafkaconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createtopics"
)

// strangers answers like a client that does not know the controller for so many requests.
type strangers struct{ left, asked int }

func (s *strangers) RoundTrip(context.Context, net.Addr, kafka.Request) (kafka.Response, error) {
	if s.asked++; s.left > 0 {
		s.left--
		return nil, kafka.BrokerNotAvailable
	}
	return &createtopics.Response{}, nil
}

func TestCreateWaitsForTheController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			left, asked int
			err         error
		}{{0, 1, nil}, {3, 4, nil}, {100, 8, kafka.BrokerNotAvailable}} {
			s := &strangers{left: c.left}
			_, err := create(t.Context(), &kafka.Client{Addr: kafka.TCP("none"), Transport: s}, &kafka.CreateTopicsRequest{})
			if !errors.Is(err, c.err) || s.asked != c.asked {
				t.Errorf("after %d refusals: asked %d times, %v", c.left, s.asked, err)
			}
		}
	})
}

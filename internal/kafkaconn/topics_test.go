package kafkaconn

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createtopics"
)

// starting is a cluster that is not ready for so many requests.
type starting struct {
	left, asked int
	err         error                      // of the request
	refusal     createtopics.ResponseTopic // or of the topic
}

func (s *starting) RoundTrip(context.Context, net.Addr, kafka.Request) (kafka.Response, error) {
	if s.asked++; s.left == 0 {
		return &createtopics.Response{Topics: []createtopics.ResponseTopic{{Name: "t"}}}, nil
	}
	s.left--
	if s.err != nil {
		return nil, s.err
	}
	return &createtopics.Response{Topics: []createtopics.ResponseTopic{s.refusal}}, nil
}

func TestCreateWaitsUntilTheClusterIsReady(t *testing.T) {
	refused := func(code kafka.Error, message string) createtopics.ResponseTopic {
		return createtopics.ResponseTopic{Name: "t", ErrorCode: int16(code), ErrorMessage: message}
	}
	fenced := refused(kafka.InvalidReplicationFactor, "Unable to replicate the partition 1 time(s): All brokers are currently fenced, or have all their log directories cordoned.")
	small := refused(kafka.InvalidReplicationFactor, "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached because only 1 broker(s) are registered.")
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			starting
			asked int // 0: until patience ends
			want  error
		}{
			"ready":                      {starting{}, 1, nil},
			"no controller known":        {starting{left: 3, err: kafka.BrokerNotAvailable}, 4, nil},
			"never one known":            {starting{left: 1000, err: kafka.BrokerNotAvailable}, 0, kafka.BrokerNotAvailable},
			"fenced for a moment":        {starting{left: 3, refusal: fenced}, 4, nil},
			"fenced for good":            {starting{left: 1000, refusal: fenced}, 0, kafka.InvalidReplicationFactor},
			"another controller":         {starting{left: 1, refusal: refused(kafka.NotController, "")}, 2, nil},
			"too small":                  {starting{left: 1000, refusal: small}, 1, kafka.InvalidReplicationFactor},
			"not allowed":                {starting{left: 1000, refusal: refused(kafka.TopicAuthorizationFailed, "")}, 1, kafka.TopicAuthorizationFailed},
			"somebody else created it":   {starting{left: 1000, refusal: refused(kafka.TopicAlreadyExists, "")}, 1, kafka.TopicAlreadyExists},
			"out of reach: the caller's": {starting{left: 1000, err: net.ErrClosed}, 1, net.ErrClosed},
		} {
			began := time.Now()
			res, err := create(t.Context(), &kafka.Client{Addr: kafka.TCP("none"), Transport: &c.starting}, &kafka.CreateTopicsRequest{})
			if err == nil {
				err = res.Errors["t"]
			}
			if !errors.Is(err, c.want) || c.asked != 0 && c.starting.asked != c.asked || c.asked == 0 && time.Since(began) < patience {
				t.Errorf("%s: asked %d times in %v: %v", name, c.starting.asked, time.Since(began), err)
			}
		}
	})
}

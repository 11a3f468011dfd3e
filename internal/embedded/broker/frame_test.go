package broker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/evenhand/evenhand/internal/kafkaconn"
)

// TestStrangersAreHungUpOn: what is no request of the protocol ends its connection, not the broker.
func TestStrangersAreHungUpOn(t *testing.T) {
	b := start(t, oneOf(t.TempDir()))
	for name, sent := range map[string]string{
		"unknown key":      "\x00\x00\x00\x08\x7f\x7f\x00\x00\x00\x00\x00\x00",
		"negative version": "\x00\x00\x00\x08\x00\x12\xff\xff\x00\x00\x00\x00",
		"too large":        "\x7f\xff\xff\xff\x00\x12\x00\x00",
		"too small":        "\x00\x00\x00\x01\x00\x12\x00\x00",
		"HTTP":             "GET /metrics HTTP/1.1\r\n\r\n",
		"TLS":              "\x16\x03\x01\x02\x00\x01\x00\x01",
		"broken off":       "\x00\x00\x00\x20\x00\x12\x00\x00\x00",
		"garbage body":     "\x00\x00\x00\x10\x00\x03\x00\x09\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	} {
		conn, err := net.Dial("tcp", b.Addr())
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Fatal(name, err)
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if answer, err := io.ReadAll(conn); err != nil && !strings.Contains(err.Error(), "reset") || len(answer) > 0 {
			t.Errorf("%s: %d bytes, %v", name, len(answer), err)
		}
		_ = conn.Close()
	}
	if err := produce(t, connTo(b.Addr()), kafkaconn.Interactions, "still there"); err != nil {
		t.Fatal(err)
	}
}

// TestProduceToUnknownTopicIDs: two of them in one request made kfake panic.
func TestProduceToUnknownTopicIDs(t *testing.T) {
	b := start(t, oneOf(t.TempDir()))
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(13) // the first with ids instead of names
	req.Acks = 1
	for id := range 2 {
		topic := kmsg.NewProduceRequestTopic()
		topic.TopicID = [16]byte{byte(id + 1)}
		topic.Partitions = append(topic.Partitions, kmsg.NewProduceRequestTopicPartition())
		req.Topics = append(req.Topics, topic)
	}
	conn, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, conn)
	if err := produce(t, connTo(b.Addr()), kafkaconn.Interactions, "still there"); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request and reads its answer as a client does.
func ask(t *testing.T, b *Broker, req kmsg.Request) kmsg.Response {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, req, 1)); err != nil {
		t.Fatal(err)
	}
	var size [4]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(answer[4:]); err != nil { // behind the correlation id; no version here has a flexible header
		t.Fatal(err)
	}
	return resp
}

// TestAnswersHoldNoNullArrays: Java's AdminClient (kafka-topics.sh, Spring's KafkaAdmin) ends over arrays that are null. It
// takes the greatest version that is offered.
func TestAnswersHoldNoNullArrays(t *testing.T) {
	b := start(t, oneOf(t.TempDir()))
	offered := map[int16]int16{}
	for _, k := range ask(t, b, kmsg.NewPtrApiVersionsRequest()).(*kmsg.ApiVersionsResponse).ApiKeys {
		offered[k.ApiKey] = k.MaxVersion
	}
	if v, ok := offered[int16(kmsg.DescribeTopicPartitions)]; ok {
		t.Errorf("DescribeTopicPartitions is offered up to version %d: the eligible leaders in its answers are null", v)
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.SetVersion(offered[int16(kmsg.CreateTopics)])
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = "mine", 2, 1
	req.Topics = append(req.Topics, topic)
	if req.IsFlexible() {
		t.Fatalf("CreateTopics is offered up to version %d: the settings in its answers are null", req.GetVersion())
	}
	resp := ask(t, b, req).(*kmsg.CreateTopicsResponse)
	if len(resp.Topics) != 1 || resp.Topics[0].Topic != "mine" || resp.Topics[0].ErrorCode != 0 {
		t.Fatalf("%+v", resp)
	}
	meta := kmsg.NewPtrMetadataRequest()
	meta.SetVersion(8)
	asked := kmsg.NewMetadataRequestTopic()
	asked.Topic = kmsg.StringPtr("mine")
	meta.Topics = append(meta.Topics, asked)
	for _, p := range ask(t, b, meta).(*kmsg.MetadataResponse).Topics[0].Partitions {
		if p.Replicas == nil || p.ISR == nil {
			t.Errorf("%+v", p)
		}
	}
}

// said is a connection on which a client said something and hung up.
type said struct {
	net.Conn
	io.Reader
}

func (s said) Read(p []byte) (int, error) { return s.Reader.Read(p) }

func request(key int16, body string) string {
	head := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	head = binary.BigEndian.AppendUint16(head, uint16(key))
	return string(append(head, 0, 0, 0, 0, 0, 1)) + body
}

func FuzzFramed(f *testing.F) {
	f.Add([]byte(request(18, "") + request(3, "\x00\x00\x00\x00")))
	f.Add([]byte(request(18, "") + "GET / HTTP/1.1\r\n"))
	f.Add([]byte(request(999, "x")))
	f.Add([]byte("\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		var why error
		for _, by := range []func(io.Reader) io.Reader{func(r io.Reader) io.Reader { return r }, iotest.OneByteReader, iotest.DataErrReader} {
			refusals := 0
			conn := &framed{Conn: said{Reader: by(bytes.NewReader(sent))}, refused: func(err error) { refusals++; why = err }}
			got, err := io.ReadAll(conn)
			if !bytes.HasPrefix(sent, got) {
				t.Fatal("not what was sent")
			}
			if (refusals > 0) != errors.Is(err, errNotKafka) || refusals > 1 {
				t.Fatalf("%d refusals and %v", refusals, err)
			}
			if err == nil && len(got)+8 <= len(sent) {
				t.Fatalf("%d of %d bytes without an error", len(got), len(sent))
			}
			for len(got) >= 8 {
				size := binary.BigEndian.Uint32(got)
				if kmsg.RequestForKey(int16(binary.BigEndian.Uint16(got[4:]))) == nil || size > maxRequest {
					t.Fatalf("a request that the protocol does not have was let through; refused: %v", why)
				}
				got = got[min(len(got), int(size)+4):]
			}
		}
	})
}

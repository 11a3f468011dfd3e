package kafkaconn

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"github.com/evenhand/evenhand/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func cluster(t *testing.T, opts ...kfake.Opt) Config {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	conn := DefaultConfig()
	conn.Brokers = c.ListenAddrs()
	return conn
}

func TestEnsure(t *testing.T) {
	conn := cluster(t)
	done, err := Ensure(t.Context(), conn, Topics(3), 1)
	if err != nil || len(done.Created) != 10 {
		t.Fatalf("%+v %v", done, err)
	}
	done, err = Ensure(t.Context(), conn, Topics(3), 1)
	if err != nil || len(done.Created)+len(done.Warnings) != 0 {
		t.Fatalf("a second time: %+v %v", done, err)
	}
	states, err := List(t.Context(), conn, Topics(3))
	if err != nil || len(states) != 10 {
		t.Fatalf("%v %v", states, err)
	}
	if s := states[0]; s.Name != Interactions || s.Partitions != 3 || s.Config["message.timestamp.type"] != "LogAppendTime" || s.Config["retention.ms"] != "604800000" {
		t.Errorf("%+v", s)
	}
	if s := states[7]; s.Name != Jobs || s.Partitions != 1 {
		t.Errorf("%+v", s)
	}
}

func TestEnsureTellsMismatches(t *testing.T) {
	conn := cluster(t)
	wrong := []Topic{
		{Name: Interactions, Partitions: 1, Config: map[string]string{"max.message.bytes": "1000", "retention.ms": "1000"}},
		{Name: AuditStream, Partitions: 1, Config: map[string]string{"message.timestamp.type": "LogAppendTime", "max.message.bytes": "60000", "retention.ms": "-1"}},
		{Name: Decisions, Partitions: 4, Config: map[string]string{"message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact", "retention.ms": "1000"}},
	}
	if _, err := Ensure(t.Context(), conn, wrong, 1); err != nil {
		t.Fatal(err)
	}
	done, err := Ensure(t.Context(), conn, Topics(1), 1)
	if audit.KindOf(err) != audit.KindInvalid {
		t.Fatalf("%v", err)
	}
	for _, want := range []string{
		`topic llm.interactions: message.timestamp.type is "CreateTime", wanted "LogAppendTime": kafka-configs --alter --entity-type topics --entity-name llm.interactions --add-config message.timestamp.type=LogAppendTime`,
		`topic llm.interactions: max.message.bytes is "1000"`,
		`topic evenhand.decisions: cleanup.policy is "compact", wanted "delete"`,
		`topic evenhand.decisions: retention.ms is "1000", wanted "-1"`,
		"topic evenhand.decisions: has 4 partitions but needs one order over all records: create it again with 1 partition",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("not told: %s\nin: %v", want, err)
		}
	}
	if len(done.Warnings) != 2 || !strings.Contains(done.Warnings[0], `retention.ms is "1000"`) || !strings.Contains(done.Warnings[1], `topic bias.audit.stream: max.message.bytes is "60000", wanted "1048588": kafka-configs`) {
		t.Errorf("warnings %q", done.Warnings)
	}
	if len(done.Created) != 7 {
		t.Errorf("created %q: faults of others must not keep topics from being made", done.Created)
	}
}

func TestProducer(t *testing.T) {
	conn := cluster(t)
	if _, err := Ensure(t.Context(), conn, Topics(2), 1); err != nil {
		t.Fatal(err)
	}
	opt := DefaultProducerOptions()
	opt.MaxInFlight = 2_000_000
	p, err := NewProducer(conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	msg := func(n int) kafka.Message { return kafka.Message{Topic: Interactions, Value: make([]byte, n)} }

	if err := p.Produce(t.Context(), nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
	if err := p.Produce(t.Context(), []kafka.Message{msg(10), msg(MaxMessage - 100)}); err != nil {
		t.Errorf("two: %v", err)
	}
	err = p.Produce(t.Context(), []kafka.Message{msg(10), msg(MaxMessage + 1), msg(10)})
	var each MessageErrors
	if audit.KindOf(err) != audit.KindInvalid || !errors.As(err, &each) || len(each) != 3 || each[0] != nil || each[1] == nil || each[2] != nil {
		t.Errorf("one too large of three: %v %v", err, each)
	}
	err = p.Produce(t.Context(), []kafka.Message{msg(800_000), msg(800_000), msg(800_000)})
	if audit.KindOf(err) != audit.KindOverloaded {
		t.Errorf("more than fits in flight: %v", err)
	}
	err = p.Produce(t.Context(), []kafka.Message{{Topic: "missing", Value: []byte("x")}})
	if audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("a missing topic: %v is %s", err, audit.KindOf(err))
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := p.Produce(t.Context(), []kafka.Message{msg(1)}); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("after Close: %v", err)
	}
}

// What is written in any codec is read again; what has none stands in the log as it is.
func TestCompression(t *testing.T) {
	conn := cluster(t)
	if _, err := Ensure(t.Context(), conn, Topics(1), 1); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("the same again and again ", 40)
	for i, name := range []string{"none", "gzip", "snappy", "lz4", "zstd", ""} {
		conn.Compression = name
		if err := conn.Validate(); err != nil {
			t.Error(err)
		}
		p, err := NewProducer(conn, DefaultProducerOptions())
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Produce(t.Context(), []kafka.Message{{Topic: Interactions, Value: []byte(text)}}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		_ = p.Close(context.Background())
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: conn.Brokers, Topic: Interactions, Partition: 0, MaxWait: time.Second})
		if err := r.SetOffset(int64(i)); err != nil {
			t.Fatal(err)
		}
		if m, err := r.ReadMessage(t.Context()); err != nil || string(m.Value) != text {
			t.Errorf("%s: %d bytes, %v", name, len(m.Value), err)
		}
		_ = r.Close()
	}
	conn.Compression = "brotli"
	if err := conn.Validate(); err == nil || !strings.Contains(err.Error(), "kafka.compression") {
		t.Errorf("%v", err)
	}
}

// TestProducerBoundHoldsThroughAnOutage: what was handed over counts until the brokers answered or
// patience ends, even when its caller is long gone.
func TestProducerBoundHoldsThroughAnOutage(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, Interactions))
	if err != nil {
		t.Fatal(err)
	}
	conn := DefaultConfig()
	conn.Brokers = c.ListenAddrs()
	opt := DefaultProducerOptions()
	opt.MaxInFlight, opt.Patience = 10_000, 2*time.Second
	p, err := NewProducer(conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	m := []kafka.Message{{Topic: Interactions, Value: make([]byte, 6000)}}
	if err := p.Produce(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := p.Produce(ctx, m); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("without brokers: %v", err)
	}
	began := time.Now()
	if err := p.Produce(t.Context(), m); audit.KindOf(err) != audit.KindOverloaded || time.Since(began) > time.Second {
		t.Errorf("while the first is still tried: %v after %v", err, time.Since(began))
	}
	p.workers.Wait()
	if err := p.Produce(t.Context(), m); audit.KindOf(err) != audit.KindUnavailable {
		t.Errorf("after patience: %v", err)
	}
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// A caller hears within its patience of brokers that hang, whatever is under way before its message.
func TestProducerAnswersWithinItsPatience(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, Interactions))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	release := make(chan struct{})
	var hung sync.Once
	begun := make(chan struct{})
	conn := DefaultConfig()
	conn.Brokers = c.ListenAddrs()
	opt := DefaultProducerOptions()
	opt.Patience = time.Second // a request alone may take five
	p, err := NewProducer(conn, opt)
	if err != nil {
		t.Fatal(err)
	}
	m := []kafka.Message{{Topic: Interactions, Value: []byte("x")}}
	if err := p.Produce(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, When: func(kmsg.Request) bool {
		hung.Do(func() { close(begun) })
		<-release
		return false
	}})
	var callers sync.WaitGroup
	call := func() {
		began := time.Now()
		if err, took := p.Produce(t.Context(), m), time.Since(began); audit.KindOf(err) != audit.KindUnavailable || took > 4*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
	}
	callers.Go(call)
	<-begun
	callers.Go(call) // waits behind the first
	callers.Wait()
	close(release)
	if err := p.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestProducerGathersWhileWaiting: many callers with one message each share requests.
func TestProducerGathersWhileWaiting(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, Interactions))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var requests atomic.Int64
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Count: -1, When: func(kmsg.Request) bool {
		requests.Add(1)
		time.Sleep(10 * time.Millisecond) // a slow disk
		return false
	}})
	conn := DefaultConfig()
	conn.Brokers = c.ListenAddrs()
	p, err := NewProducer(conn, DefaultProducerOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	const callers, each = 100, 20
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for j := range each {
				if err := p.Produce(t.Context(), []kafka.Message{{Topic: Interactions, Value: fmt.Appendf(nil, "%d/%d", i, j)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := requests.Load(); n > callers*each/4 {
		t.Errorf("%d messages took %d requests", callers*each, n)
	}
	if end := c.PartitionInfo(Interactions, 0).HighWatermark; end != callers*each {
		t.Errorf("%d records in the log, want %d", end, callers*each)
	}
}

// TestProducerIsolatesWhatTheBrokerFindsTooLarge: the others of the batch arrive.
func TestProducerIsolatesWhatTheBrokerFindsTooLarge(t *testing.T) {
	conn := cluster(t)
	small := []Topic{{Name: "small", Partitions: 1, Config: map[string]string{"max.message.bytes": "2000"}}}
	if _, err := Ensure(t.Context(), conn, small, 1); err != nil {
		t.Fatal(err)
	}
	p, err := NewProducer(conn, DefaultProducerOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close(context.Background()) }()
	noise := make([]byte, 3000)
	_, _ = rand.Read(noise)
	msgs := []kafka.Message{{Topic: "small", Value: []byte("a")}, {Topic: "small", Value: noise}, {Topic: "small", Value: []byte("b")}}
	err = p.Produce(t.Context(), msgs)
	var each MessageErrors
	if !errors.As(err, &each) || each[0] != nil || each[2] != nil || audit.KindOf(each[1]) != audit.KindInvalid {
		t.Fatalf("%v: %v", err, each)
	}
	const want = "kafkaconn: produce: topic small takes no message of 3032 bytes, its max.message.bytes 2000 is less: " +
		"kafka-configs --alter --entity-type topics --entity-name small --add-config max.message.bytes=1048588"
	if each[1].Error() != want {
		t.Errorf("got  %v\nwant %s", each[1], want)
	}
	// Now the limit is known, before anything is sent. What compresses well fits all the same.
	if err := p.Fits(&msgs[1]); audit.KindOf(err) != audit.KindInvalid || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, m := range []kafka.Message{msgs[0], {Topic: "small", Value: make([]byte, 3000)}, {Topic: "unknown", Value: noise}} {
		if err := p.Fits(&m); err != nil {
			t.Error(err)
		}
	}
}

func TestMessageErrorsShowEachOnce(t *testing.T) {
	away, late := errors.New("away"), errors.New("late")
	many := make(MessageErrors, 8000)
	for i := range many {
		many[i] = away
	}
	for _, test := range []struct {
		errs MessageErrors
		want string
	}{
		{many, "8000 of 8000 messages failed: away"},
		{MessageErrors{nil, away}, "1 of 2 messages failed: away"},
		{MessageErrors{away, late, nil, away}, "3 of 4 messages failed: 2 times away; 1 times late"},
		{MessageErrors{errors.New("a"), errors.New("b"), errors.New("c"), errors.New("d"), errors.New("e"), errors.New("f")},
			"6 of 6 messages failed: 1 times a; 1 times b; 1 times c; 1 times d; and 2 more that differ"},
	} {
		if got := test.errs.Error(); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
	}
}

func TestSASLAndTLS(t *testing.T) {
	server, caFile := certificate(t)
	for _, mechanism := range []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			conn := cluster(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "us,er=1", "pencil"), kfake.TLS(server))
			conn.TLS = TLS{Enabled: true, CAFile: caFile}
			conn.SASL = SASL{Mechanism: mechanism, User: "us,er=1", Password: "pencil"}
			if err := conn.Validate(); err != nil {
				t.Fatal(err)
			}
			if _, err := Ensure(t.Context(), conn, Topics(1), 1); err != nil {
				t.Fatal(err)
			}
			d, err := conn.Dialer()
			if err != nil {
				t.Fatal(err)
			}
			c, err := d.DialContext(t.Context(), "tcp", conn.Brokers[0])
			if err != nil {
				t.Fatalf("the dialer: %v", err)
			}
			_ = c.Close()
			conn.SASL.Password = "wrong"
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			if _, err := List(ctx, conn, Topics(1)); err == nil {
				t.Fatal("a wrong password is taken")
			} else if strings.Contains(err.Error(), "wrong") {
				t.Fatalf("the password stands in %v", err)
			}
		})
	}
}

// certificate makes a server's certificate for 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (server *tls.Config, caFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	caFile = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}, caFile
}

// TestSCRAMVectors is the exchange printed in RFC 7677, section 3.
func TestSCRAMVectors(t *testing.T) {
	s, err := newSCRAM("SCRAM-SHA-256", "user", "pencil")
	if err != nil {
		t.Fatal(err)
	}
	const nonce = "rOprNGfwEbeRWgbNEkqO"
	const challenge = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	const proof = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
	const final = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
	open := func() interface {
		Next(context.Context, []byte) (bool, []byte, error)
	} {
		x, first, err := s.start(nonce)
		if err != nil || string(first) != "n,,n=user,r="+nonce {
			t.Fatalf("%s %v", first, err)
		}
		return x
	}
	x := open()
	done, answer, err := x.Next(t.Context(), []byte(challenge))
	if err != nil || done || string(answer) != proof {
		t.Fatalf("%t %s %v", done, answer, err)
	}
	if done, _, err := x.Next(t.Context(), []byte(final)); err != nil || !done {
		t.Fatalf("the broker's proof: %t %v", done, err)
	}
	for name, bad := range map[string]string{
		"another nonce":         strings.Replace(challenge, "r=rO", "r=xO", 1),
		"our nonce alone":       "r=" + nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
		"too few iterations":    strings.Replace(challenge, "i=4096", "i=1", 1),
		"endless iterations":    strings.Replace(challenge, "i=4096", "i=999999999", 1),
		"no salt":               strings.Replace(challenge, "s=W22ZaJ0SNY7soEsUEjb6gQ==", "s=", 1),
		"an error of the other": "e=unknown-user",
		"nothing":               "",
	} {
		if _, _, err := open().Next(t.Context(), []byte(bad)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	x = open()
	if _, _, err := x.Next(t.Context(), []byte(challenge)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"v=AAAA", "", "e=invalid-proof"} {
		if _, _, err := x.Next(t.Context(), []byte(bad)); err == nil {
			t.Errorf("the broker's proof %q is taken", bad)
		}
	}
}

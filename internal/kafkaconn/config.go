// Package kafkaconn holds what every user of Kafka in this program shares: one connection
// configuration for all of kafka-go's client types, the list of topics with their settings, the
// classing of Kafka errors, and a producer with bounded memory.
//
// A [Config] builds both of kafka-go's connection styles: the Transport (Client) and the
// Dialer (ConsumerGroup). Topics are created before anybody joins a group, with
// message.timestamp.type=LogAppendTime: the broker's time keys what is stored. Errors are classed by
// [Class]; none holds a message's content or a secret.
package kafkaconn

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"

	"github.com/evenhand/evenhand/internal/secret"
)

// Config says how to reach the brokers. Start from DefaultConfig.
type Config struct {
	// Brokers lists host:port of some brokers; name all of them, for they are asked in order.
	Brokers []string `yaml:"brokers"`
	// ClientID is shown in the brokers' logs and quotas. Default "evenhand".
	ClientID string `yaml:"client_id"`
	TLS      TLS    `yaml:"tls"`
	SASL     SASL   `yaml:"sasl"`
	// Compression is of what this client writes: none, gzip, snappy, lz4 or zstd. Default lz4.
	Compression string `yaml:"compression"`
}

// TLS says whether and how connections are encrypted.
type TLS struct {
	Enabled bool `yaml:"enabled"`
	// CAFile is a PEM file of authorities to trust; empty means the system's.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile are this client's certificate, for brokers that ask for one.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName overrides the name that the brokers' certificates must bear; empty means the host.
	ServerName string `yaml:"server_name"`
}

// SASL says how this client proves who it is. An empty Mechanism means not at all.
type SASL struct {
	// Mechanism is "", PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512.
	Mechanism string      `yaml:"mechanism"`
	User      string      `yaml:"user"`
	Password  secret.Text `yaml:"password"`
}

// DefaultConfig is a broker on this machine, without TLS and SASL.
func DefaultConfig() Config {
	return Config{Brokers: []string{"127.0.0.1:9092"}, ClientID: "evenhand", Compression: "lz4"}
}

// codecs are those of the protocol by name; "" is lz4, as in a Config of brokers alone.
var codecs = map[string]kafka.Compression{"": kafka.Lz4, "lz4": kafka.Lz4, "none": 0, "gzip": kafka.Gzip, "snappy": kafka.Snappy, "zstd": kafka.Zstd}

// Validate reports every fault, with the key as the operator writes it.
func (c Config) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("kafka.brokers: is empty; list host:port of at least one broker"))
	}
	for i, b := range c.Brokers {
		if strings.Contains(b, "://") {
			errs = append(errs, fmt.Errorf("kafka.brokers[%d]: %q is not host:port; leave out the listener's name and ://, and say kafka.tls and kafka.sasl_mechanism", i, b))
		} else if _, _, err := net.SplitHostPort(b); err != nil {
			errs = append(errs, fmt.Errorf("kafka.brokers[%d]: %q is not host:port", i, b))
		}
	}
	switch c.SASL.Mechanism {
	case "":
		if c.SASL.User != "" || c.SASL.Password != "" {
			errs = append(errs, errors.New("kafka.sasl_mechanism: is empty but a user or password is set; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"))
		}
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		if c.SASL.User == "" || c.SASL.Password == "" {
			errs = append(errs, errors.New("kafka.sasl_mechanism: "+c.SASL.Mechanism+" needs kafka.sasl_user and kafka.sasl_password"))
		}
	default:
		errs = append(errs, fmt.Errorf("kafka.sasl_mechanism: %q is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.SASL.Mechanism))
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		errs = append(errs, errors.New("kafka.tls_cert_file, kafka.tls_key_file: belong together; set both or none"))
	}
	if !c.TLS.Enabled && (c.TLS.CAFile != "" || c.TLS.CertFile != "" || c.TLS.ServerName != "") {
		errs = append(errs, errors.New("kafka.tls: is false but other tls keys are set; set it to true or remove them"))
	}
	return errors.Join(append(errs, ValidCompression(c.Compression))...)
}

// ValidCompression says what is wrong with a name of a compression; nil where nothing is.
func ValidCompression(name string) error {
	if _, ok := codecs[name]; !ok {
		return fmt.Errorf("kafka.compression: %q is not none, gzip, snappy, lz4 or zstd", name)
	}
	return nil
}

// Timeouts of every connection. A hung broker accepts a dial and then says nothing, so each step has
// its own bound.
const (
	DialTimeout = 3 * time.Second
	metadataTTL = 5 * time.Second  // how fast a new leader is found
	idleTimeout = 60 * time.Second // of pooled connections
)

// Transport builds the pool behind kafka-go's Client. The caller closes its idle
// connections.
func (c Config) Transport() (*kafka.Transport, error) {
	t, err := c.tls()
	if err != nil {
		return nil, err
	}
	m, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	return &kafka.Transport{
		ClientID: c.ClientID, TLS: t, SASL: m,
		DialTimeout: DialTimeout, MetadataTTL: metadataTTL, IdleTimeout: idleTimeout,
	}, nil
}

// Dialer builds what kafka-go's ConsumerGroup connects with.
func (c Config) Dialer() (*kafka.Dialer, error) {
	t, err := c.tls()
	if err != nil {
		return nil, err
	}
	m, err := c.mechanism()
	if err != nil {
		return nil, err
	}
	return &kafka.Dialer{ClientID: c.ClientID, Timeout: DialTimeout, DualStack: true, TLS: t, SASLMechanism: m}, nil
}

// Client builds a client and its transport; call the returned function when done with it.
func (c Config) Client() (cl *kafka.Client, release func(), err error) {
	if err := c.Validate(); err != nil {
		return nil, nil, err
	}
	t, err := c.Transport()
	if err != nil {
		return nil, nil, err
	}
	cl, release = c.clientOn(t)
	return cl, release, nil
}

func (c Config) clientOn(t *kafka.Transport) (cl *kafka.Client, release func()) {
	return &kafka.Client{Addr: kafka.TCP(c.Brokers...), Transport: t, Timeout: 10 * time.Second}, t.CloseIdleConnections
}

func (c Config) mechanism() (sasl.Mechanism, error) {
	switch c.SASL.Mechanism {
	case "":
		return nil, nil
	case "PLAIN":
		return plain.Mechanism{Username: c.SASL.User, Password: c.SASL.Password.Reveal()}, nil
	case "SCRAM-SHA-256", "SCRAM-SHA-512":
		return newSCRAM(c.SASL.Mechanism, c.SASL.User, c.SASL.Password.Reveal())
	}
	return nil, fmt.Errorf("kafka.sasl_mechanism: %q is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", c.SASL.Mechanism)
}

func (c Config) tls() (*tls.Config, error) {
	if !c.TLS.Enabled {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.TLS.ServerName}
	if c.TLS.CAFile != "" {
		pem, err := os.ReadFile(c.TLS.CAFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls_ca_file: %w", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka.tls_ca_file: %s holds no PEM certificate", c.TLS.CAFile)
		}
	}
	if c.TLS.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.TLS.CertFile, c.TLS.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls_cert_file, kafka.tls_key_file: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

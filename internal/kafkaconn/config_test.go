package kafkaconn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestSecretNeverPrints(t *testing.T) {
	c := DefaultConfig()
	c.SASL = SASL{Mechanism: "PLAIN", User: "u", Password: "hunter2"}
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%s %q", c.SASL.Password, c.SASL.Password), string(raw)} {
		if strings.Contains(s, "hunter2") {
			t.Errorf("the password stands in %s", s)
		}
	}
	if c.SASL.Password.Reveal() != "hunter2" {
		t.Error("the password is lost")
	}
}

func TestValidate(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no broker", func(c *Config) { c.Brokers = nil }, "kafka.brokers: is empty; list host:port of at least one broker"},
		{"broker without port", func(c *Config) { c.Brokers = []string{"a:1", "kafka"} }, `kafka.brokers[1]: "kafka" is not host:port`},
		{"a listener's name", func(c *Config) { c.Brokers = []string{"SASL_SSL://kafka:9093"} }, `kafka.brokers[0]: "SASL_SSL://kafka:9093" is not host:port; leave out the listener's name and ://, and say kafka.tls and kafka.sasl_mechanism`},
		{"unknown mechanism", func(c *Config) { c.SASL.Mechanism = "GSSAPI" }, `kafka.sasl_mechanism: "GSSAPI" is not PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512`},
		{"mechanism without user", func(c *Config) { c.SASL.Mechanism = "PLAIN" }, "kafka.sasl_mechanism: PLAIN needs kafka.sasl_user and kafka.sasl_password"},
		{"user without mechanism", func(c *Config) { c.SASL.User = "u" }, "kafka.sasl_mechanism: is empty but a user or password is set; use PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"},
		{"half a certificate", func(c *Config) { c.TLS = TLS{Enabled: true, CertFile: "c"} }, "kafka.tls_cert_file, kafka.tls_key_file: belong together; set both or none"},
		{"tls keys without tls", func(c *Config) { c.TLS.CAFile = "ca" }, "kafka.tls: is false but other tls keys are set; set it to true or remove them"},
		{"all at once", func(c *Config) { c.Brokers, c.SASL.Mechanism = nil, "PLAIN" }, "kafka.brokers: is empty; list host:port of at least one broker\nkafka.sasl_mechanism: PLAIN needs kafka.sasl_user and kafka.sasl_password"},
	} {
		c := DefaultConfig()
		tc.change(&c)
		if err := c.Validate(); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", tc.name, err, tc.want)
		}
	}
}

func TestMissingFilesAreToldByKey(t *testing.T) {
	c := DefaultConfig()
	c.TLS = TLS{Enabled: true, CAFile: "nowhere.pem"}
	if _, err := c.Transport(); err == nil || !strings.Contains(err.Error(), "kafka.tls_ca_file") {
		t.Errorf("Transport: %v", err)
	}
	if _, err := c.Dialer(); err == nil || !strings.Contains(err.Error(), "kafka.tls_ca_file") {
		t.Errorf("Dialer: %v", err)
	}
}

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/config"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/pipeline"
	chschema "github.com/evenhand/evenhand/schemas/clickhouse"
)

// settings is everything an operator may set.
type settings struct {
	// DataDir holds the embedded broker's and store's data. Default: the user's data folder.
	DataDir    string             `koanf:"data_dir"`
	HTTP       httpSettings       `koanf:"http"`
	Tenant     tenantSettings     `koanf:"tenant"`
	Kafka      kafkaSettings      `koanf:"kafka"`
	ClickHouse clickhouseSettings `koanf:"clickhouse"`
	Engine     engineSettings     `koanf:"engine"`
	Broker     brokerSettings     `koanf:"broker"`
	Ingest     ingestSettings     `koanf:"ingest"`
	Pipeline   pipelineSettings   `koanf:"pipeline"`
	Detect     detectSettings     `koanf:"detect"`
	Log        obs.LogConfig      `koanf:"log"`
	Trace      obs.TraceConfig    `koanf:"trace"`
}

type httpSettings struct {
	// Addr is where the doors listen; $PORT overrides its port. Default 127.0.0.1:8787.
	Addr string `koanf:"addr"`
	// APIKey is asked of every caller when set. An address outside loopback needs one.
	APIKey config.Secret `koanf:"api_key"`
	// Pprof serves Go's profiles under /debug/pprof. Default false; needs a loopback address.
	Pprof bool `koanf:"pprof"`
}

type tenantSettings struct {
	// Default is the tenant of events that name none. 'up' sets "default"; elsewhere unset.
	Default string `koanf:"default"`
}

type kafkaSettings struct {
	Brokers       []string      `koanf:"brokers"`
	Group         string        `koanf:"group"`
	Partitions    int           `koanf:"partitions"`  // of topics that we create
	Replication   int           `koanf:"replication"` // of topics that we create
	TLS           bool          `koanf:"tls"`
	TLSCAFile     string        `koanf:"tls_ca_file"`
	TLSCertFile   string        `koanf:"tls_cert_file"`
	TLSKeyFile    string        `koanf:"tls_key_file"`
	SASLMechanism string        `koanf:"sasl_mechanism"`
	SASLUser      string        `koanf:"sasl_user"`
	SASLPassword  config.Secret `koanf:"sasl_password"`
}

type clickhouseSettings struct {
	Addr       []string      `koanf:"addr"`
	Database   string        `koanf:"database"`
	Username   string        `koanf:"username"`
	Password   config.Secret `koanf:"password"`
	TLS        bool          `koanf:"tls"`
	TLSCAFile  string        `koanf:"tls_ca_file"`
	Cluster    string        `koanf:"cluster"`
	Replicated bool          `koanf:"replicated"`
}

type engineSettings struct {
	Lib      string `koanf:"lib"`       // engine library; "" looks in the user's cache
	MemoryMB int64  `koanf:"memory_mb"` // limit of the engine's memory
}

type brokerSettings struct {
	Port  int   `koanf:"port"`   // of the embedded broker on 127.0.0.1; 0 takes a free one
	CapMB int64 `koanf:"cap_mb"` // of llm.interactions; 0 means 8 GiB or a fifth of the free disk
}

type ingestSettings struct {
	MessageBytes int `koanf:"message_bytes"`
	TextBytes    int `koanf:"text_bytes"`
	Depth        int `koanf:"depth"`
}

type pipelineSettings struct {
	Workers      int           `koanf:"workers"`
	BatchRows    int           `koanf:"batch_rows"`
	BatchBytes   int64         `koanf:"batch_bytes"`
	BatchAge     time.Duration `koanf:"batch_age"`
	FetchBytes   int           `koanf:"fetch_bytes"`
	DrainTimeout time.Duration `koanf:"drain_timeout"`
	MemoryMB     int64         `koanf:"memory_mb"` // soft limit of this process's heap; 0 sets none
}

type detectSettings struct {
	BiasThreshold   *float64      `koanf:"bias_threshold"` // unset: the domain profile's
	BiasAction      string        `koanf:"bias_action"`
	SafetyThreshold float64       `koanf:"safety_threshold"`
	SafetyMode      string        `koanf:"safety_mode"`
	Timeout         time.Duration `koanf:"timeout"`
	GateRules       []gate.Custom `koanf:"gate_rules"`       // replace the built-in rules
	GateExtraRules  []gate.Custom `koanf:"gate_extra_rules"` // are added
	TermsCategories []string      `koanf:"terms_categories"`
	TermsCustom     []string      `koanf:"terms_custom"`
}

func defaultSettings() settings {
	p, d, ch := pipeline.DefaultConfig(), detectors.DefaultPolicy(), chconn.DefaultConfig()
	l := ingest.DefaultLimits()
	return settings{
		DataDir:    defaultDataDir(),
		HTTP:       httpSettings{Addr: "127.0.0.1:8787"},
		Kafka:      kafkaSettings{Group: kafkaconn.PipelineGroup, Partitions: 4, Replication: 1},
		ClickHouse: clickhouseSettings{Addr: ch.Addr, Database: ch.Database, Username: ch.Username},
		Engine:     engineSettings{MemoryMB: 2048},
		Ingest:     ingestSettings{MessageBytes: l.Message, TextBytes: l.Text, Depth: l.Depth},
		Pipeline: pipelineSettings{Workers: p.Workers, BatchRows: p.BatchRows, BatchBytes: p.BatchBytes, BatchAge: p.BatchAge,
			FetchBytes: p.FetchBytes, DrainTimeout: p.DrainTimeout, MemoryMB: 400},
		Detect: detectSettings{BiasAction: string(d.BiasAction), SafetyThreshold: d.SafetyThreshold.Float(), SafetyMode: string(d.SafetyMode), Timeout: d.DetectTimeout},
		Log:    obs.LogConfig{Level: "info", Format: "auto"},
		Trace:  obs.TraceConfig{Ratio: 1},
	}
}

func defaultDataDir() string {
	if d := os.Getenv("XDG_DATA_HOME"); d != "" {
		return filepath.Join(d, "evenhand")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "evenhand-data"
	}
	return filepath.Join(home, ".local", "share", "evenhand")
}

// settingsError is a fault of the operator's settings; the program ends with status 2.
type settingsError struct{ err error }

func (e *settingsError) Error() string {
	if s := e.err.Error(); !strings.Contains(s, "\n") {
		return s
	}
	return "settings:\n" + indent(e.err.Error())
}
func (e *settingsError) Unwrap() error { return e.err }

// load reads the settings over the given defaults and reports every fault at once.
func (c *cli) load(s settings) (settings, error) {
	err := config.Load(&s, config.Sources{
		File: c.Config, Env: os.Environ(), Set: c.Set,
		Foreign: []string{"EVENHAND_CONFIG", "EVENHAND_SHARED"},
		Alias:   map[string]string{"EVENHAND_API_KEY": "http.api_key"},
	})
	if port := os.Getenv("PORT"); port != "" {
		if host, _, e := net.SplitHostPort(s.HTTP.Addr); e == nil {
			s.HTTP.Addr = net.JoinHostPort(host, port)
		}
	}
	if err = errors.Join(err, s.validate()); err != nil {
		return s, &settingsError{err}
	}
	return s, nil
}

func (s settings) validate() error {
	var errs []error
	host, port, err := net.SplitHostPort(s.HTTP.Addr)
	if err != nil {
		errs = append(errs, fmt.Errorf("http.addr: %q is not host:port", s.HTTP.Addr))
	} else if !loopback(host) && s.HTTP.APIKey == "" {
		errs = append(errs, fmt.Errorf("http.api_key: %s is reachable from outside this machine; set EVENHAND_API_KEY or EVENHAND_API_KEY_FILE, or listen on 127.0.0.1:%s", s.HTTP.Addr, port))
	}
	if s.HTTP.Pprof && !loopback(host) {
		errs = append(errs, errors.New("http.pprof: profiles are served on a loopback address only; set http.addr to 127.0.0.1:PORT"))
	}
	if _, e := strconv.ParseUint(port, 10, 16); err == nil && e != nil {
		errs = append(errs, fmt.Errorf("http.addr: %q of %s is not a port; $PORT stands above http.addr", port, s.HTTP.Addr))
	}
	if s.HTTP.APIKey != "" && len(s.HTTP.APIKey) < 16 {
		errs = append(errs, errors.New("http.api_key: is shorter than 16 characters; make one with: openssl rand -hex 24"))
	}
	if s.Kafka.Partitions < 1 || s.Kafka.Partitions > 1024 {
		errs = append(errs, fmt.Errorf("kafka.partitions: %d is not in 1..1024", s.Kafka.Partitions))
	}
	if s.Kafka.Replication < 1 || s.Kafka.Replication > 9 {
		errs = append(errs, fmt.Errorf("kafka.replication: %d is not in 1..9", s.Kafka.Replication))
	}
	if s.Kafka.Group == "" {
		errs = append(errs, errors.New("kafka.group: is empty"))
	}
	if s.Engine.MemoryMB < 512 {
		errs = append(errs, fmt.Errorf("engine.memory_mb: %d is below 512", s.Engine.MemoryMB))
	}
	if s.Broker.Port < 0 || s.Broker.Port > 65535 {
		errs = append(errs, fmt.Errorf("broker.port: %d is not a port", s.Broker.Port))
	}
	if s.Broker.CapMB < 0 {
		errs = append(errs, fmt.Errorf("broker.cap_mb: %d is negative", s.Broker.CapMB))
	}
	errs = append(errs, s.pipelineConfig().Validate(), s.policy().Validate(), s.decoder().Validate(), s.termsConfig().Validate(),
		chschema.Options{Database: s.ClickHouse.Database, Cluster: s.ClickHouse.Cluster, Replicated: s.ClickHouse.Replicated}.Validate())
	return errors.Join(errs...)
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (s settings) pipelineConfig() pipeline.Config {
	p := s.Pipeline
	return pipeline.Config{Workers: p.Workers, BatchRows: p.BatchRows, BatchBytes: p.BatchBytes, BatchAge: p.BatchAge, FetchBytes: p.FetchBytes, DrainTimeout: p.DrainTimeout}
}

func (s settings) policy() detectors.Policy {
	p := detectors.Policy{
		BiasAction: audit.Action(s.Detect.BiasAction), SafetyMode: audit.Action(s.Detect.SafetyMode),
		SafetyThreshold: audit.ScoreOf(s.Detect.SafetyThreshold), DetectTimeout: s.Detect.Timeout,
	}
	if t := s.Detect.BiasThreshold; t != nil {
		v := audit.ScoreOf(*t)
		p.BiasThreshold = &v
	}
	return p
}

func (s settings) decoder() ingest.Options {
	return ingest.Options{DefaultTenant: s.Tenant.Default, Limits: ingest.Limits{Message: s.Ingest.MessageBytes, Text: s.Ingest.TextBytes, Depth: s.Ingest.Depth}}
}

func (s settings) termsConfig() terms.Config {
	c := terms.DefaultConfig()
	if len(s.Detect.TermsCategories) > 0 {
		c.Categories = s.Detect.TermsCategories
	}
	c.CustomTerms = s.Detect.TermsCustom
	return c
}

func (s settings) kafka() kafkaconn.Config {
	k := s.Kafka
	c := kafkaconn.DefaultConfig()
	c.Brokers = k.Brokers
	c.TLS = kafkaconn.TLS{Enabled: k.TLS, CAFile: k.TLSCAFile, CertFile: k.TLSCertFile, KeyFile: k.TLSKeyFile}
	c.SASL = kafkaconn.SASL{Mechanism: k.SASLMechanism, User: k.SASLUser, Password: kafkaconn.Secret(k.SASLPassword)}
	return c
}

func (s settings) clickhouse() chconn.Config {
	h := s.ClickHouse
	c := chconn.DefaultConfig()
	c.Addr, c.Database, c.Username, c.Password = h.Addr, h.Database, h.Username, h.Password.Reveal()
	c.TLS, c.TLSCAFile = h.TLS, h.TLSCAFile
	return c
}

// indent puts each fault on a line of its own.
func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n  ")
}

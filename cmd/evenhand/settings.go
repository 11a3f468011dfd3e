package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/detectors"
	"github.com/evenhand/evenhand/detectors/classifier"
	"github.com/evenhand/evenhand/detectors/classifier/encoder"
	"github.com/evenhand/evenhand/detectors/gate"
	"github.com/evenhand/evenhand/detectors/pii"
	"github.com/evenhand/evenhand/detectors/terms"
	"github.com/evenhand/evenhand/gateway"
	"github.com/evenhand/evenhand/graph"
	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/ingest/otlp"
	"github.com/evenhand/evenhand/internal/chconn"
	"github.com/evenhand/evenhand/internal/config"
	"github.com/evenhand/evenhand/internal/jobs"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/internal/llm"
	"github.com/evenhand/evenhand/internal/obs"
	"github.com/evenhand/evenhand/internal/secret"
	"github.com/evenhand/evenhand/judge/mend"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/retry"
	chschema "github.com/evenhand/evenhand/schemas/clickhouse"
	"github.com/evenhand/evenhand/sinks/clickhouse"
	"github.com/evenhand/evenhand/sinks/webhook"
	"github.com/evenhand/evenhand/sources/kafka"
	"github.com/evenhand/evenhand/store"
)

// settings is everything an operator may set.
type settings struct {
	// DataDir holds the embedded broker's and store's data. Default: the user's data folder.
	DataDir     string              `koanf:"data_dir"`
	HTTP        httpSettings        `koanf:"http"`
	Auth        authSettings        `koanf:"auth"`
	Limits      limitsSettings      `koanf:"limits"`
	GraphQL     graph.Config        `koanf:"graphql"`
	Gateway     gateway.Config      `koanf:"gateway"`
	Tenant      tenantSettings      `koanf:"tenant"`
	Kafka       kafkaSettings       `koanf:"kafka"`
	ClickHouse  clickhouseSettings  `koanf:"clickhouse"`
	Engine      engineSettings      `koanf:"engine"`
	Broker      brokerSettings      `koanf:"broker"`
	Ingest      ingestSettings      `koanf:"ingest"`
	OTLP        otlp.Names          `koanf:"otlp"`
	Pipeline    pipelineSettings    `koanf:"pipeline"`
	Join        joinSettings        `koanf:"join"`
	Formats     formatsSettings     `koanf:"formats"`
	Pricing     pricingSettings     `koanf:"pricing"`
	Detect      detectSettings      `koanf:"detect"`
	Guard       guardSettings       `koanf:"guard"`
	Rules       rulesSettings       `koanf:"rules"`
	Classifier  classifierSettings  `koanf:"classifier"`
	PII         piiSettings         `koanf:"pii"`
	Jobs        jobsSettings        `koanf:"jobs"`
	Alarms      alarmsSettings      `koanf:"alarms"`
	Judge       judgeSettings       `koanf:"judge"`
	Replay      mend.Config         `koanf:"replay"`
	Linear      linearSettings      `koanf:"linear"`
	Webhook     webhookSettings     `koanf:"webhook"`
	Gates       gatesSettings       `koanf:"gates"`
	Retention   retentionSettings   `koanf:"retention"`
	Seal        sealSettings        `koanf:"seal"`
	Reveal      revealSettings      `koanf:"reveal"`
	Query       querySettings       `koanf:"query"`
	Evaluations evaluationsSettings `koanf:"evaluations"`
	Log         obs.LogConfig       `koanf:"log"`
	Trace       obs.TraceConfig     `koanf:"trace"`
}

type httpSettings struct {
	// Addr is where the doors listen; $PORT overrides its port. Default 127.0.0.1:8787.
	Addr string `koanf:"addr"`
	// APIKey may do everything, in every tenant; what else callers may show is said under auth.
	APIKey secret.Text `koanf:"api_key"`
	// Pprof serves Go's profiles under /debug/pprof. Default false; needs a loopback address.
	Pprof bool `koanf:"pprof"`
}

type tenantSettings struct {
	// Default is the tenant of events that name none. 'up' sets "default"; elsewhere unset.
	Default string `koanf:"default"`
}

type kafkaSettings struct {
	Brokers     []string `koanf:"brokers"`
	Group       string   `koanf:"group"`
	Partitions  int      `koanf:"partitions"`  // of topics that we create
	Replication int      `koanf:"replication"` // of topics that we create
	// TenantTopics are further topics of interactions, "TOPIC=TENANT": who may write to one is a matter of
	// the brokers' ACLs, and what is in it belongs to that tenant.
	TenantTopics []string `koanf:"tenant_topics"`
	// SessionTimeout is after how long a silent member's partitions are given away, RebalanceTimeout how
	// long members have to finish their batch when partitions move.
	SessionTimeout   time.Duration `koanf:"session_timeout"`
	RebalanceTimeout time.Duration `koanf:"rebalance_timeout"`
	TLS              bool          `koanf:"tls"`
	TLSCAFile        string        `koanf:"tls_ca_file"`
	TLSCertFile      string        `koanf:"tls_cert_file"`
	TLSKeyFile       string        `koanf:"tls_key_file"`
	SASLMechanism    string        `koanf:"sasl_mechanism"`
	SASLUser         string        `koanf:"sasl_user"`
	SASLPassword     secret.Text   `koanf:"sasl_password"`
	Compression      string        `koanf:"compression"` // of what we write
}

type clickhouseSettings struct {
	Addr     []string    `koanf:"addr"`
	Database string      `koanf:"database"`
	Username string      `koanf:"username"`
	Password secret.Text `koanf:"password"`
	// The account with row policies that reads for callers from outside; "" is username.
	ReaderUsername string      `koanf:"reader_username"`
	ReaderPassword secret.Text `koanf:"reader_password"`

	TLS        bool   `koanf:"tls"`
	TLSCAFile  string `koanf:"tls_ca_file"`
	Cluster    string `koanf:"cluster"`
	Replicated bool   `koanf:"replicated"`
	// InsertQuorum is how many replicas acknowledge an insert: "", auto or a number; SequentialReads
	// lets markers be read only from a replica that has all of them.
	InsertQuorum    string `koanf:"insert_quorum"`
	SequentialReads bool   `koanf:"sequential_reads"`
}

type engineSettings struct {
	Lib      string `koanf:"lib"`       // engine library; "" looks in the user's cache
	MemoryMB int64  `koanf:"memory_mb"` // limit of the engine's memory
	// Ports on 127.0.0.1; 0 takes a free one at each start. Name them when another program, such as
	// Grafana, has the address in its configuration.
	NativePort int `koanf:"native_port"`
	HTTPPort   int `koanf:"http_port"`
	// GrafanaTenants get an account grafana_NAME each that reads that tenant's rows only.
	GrafanaTenants []string `koanf:"grafana_tenants"`
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
	BufferMB     int64         `koanf:"buffer_mb"` // of messages that were fetched and are not committed
	MemoryMB     int64         `koanf:"memory_mb"` // soft limit of this process's heap, and 300 more with the embedded broker; 0 sets none
	// StallAfter is how long work may wait without any batch going through until the process says that
	// it is not ready.
	StallAfter time.Duration `koanf:"stall_after"`
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

type classifierSettings struct {
	Enabled bool   `koanf:"enabled"`
	Action  string `koanf:"action"` // none or warn: what is recorded when something is found
	Model   string `koanf:"model"`  // a file of evenhand train; empty: the one that comes with the program
	// Encoder: off, or how much is asked of it: balanced, thorough, full.
	Encoder      string `koanf:"encoder"`
	EncoderModel string `koanf:"encoder_model"` // a file of evenhand train --encoder; empty: the one that comes with the program
	OthersModel  string `koanf:"others_model"`  // the same for other languages than English
	// Memory is how many answers of the encoders are kept, in case the same sentence comes again; 0: none.
	Memory int `koanf:"memory"`
}

const encoderOff = "off"

// capPerPartition is the least of broker.cap_mb for each partition, in MiB: twice a topic's largest message, since the last one of each partition stays.
const capPerPartition = 2

// mostAnswers that a detector remembers: 1.7 GB.
const mostAnswers = 1 << 24

var encoderEfforts = []string{encoderOff, "balanced", "thorough", "full"}

// detector makes the learned detector.
func (c classifierSettings) detector() (*classifier.Detector, error) {
	m, err := c.load()
	if err != nil {
		return nil, err
	}
	if c.Encoder == encoderOff || c.Model != "" && c.EncoderModel == "" { // the program's encoder knows the program's classifier alone
		if c.Encoder != encoderOff && c.OthersModel != "" {
			return nil, &settingsError{errors.New("classifier.others_model: with a classifier.model of your own it needs a classifier.encoder_model beside it")}
		}
		return classifier.New(m), nil
	}
	es, err := c.encoders()
	if err != nil {
		return nil, err
	}
	d, err := classifier.NewWithEncoder(m, c.Encoder, es...)
	if err != nil {
		return nil, &settingsError{fmt.Errorf("classifier.encoder: %w", errors.Unwrap(err))}
	}
	d.Remember(c.Memory)
	return d, nil
}

// encoders are that of English and that of other languages; a classifier of the operator's own has one of these only if there is a file of it, for the
// program's knows the program's classifier alone.
func (c classifierSettings) encoders() ([]*encoder.Model, error) {
	e, err := c.loadEncoder()
	if err == nil && !e.Meta.English() {
		err = &settingsError{fmt.Errorf("classifier.encoder_model: it reads %s, not English: set it as classifier.others_model", strings.Join(e.Meta.Languages, ", "))}
	}
	if err != nil {
		return nil, err
	}
	others, err := c.loadOthers()
	if others == nil || err != nil {
		return []*encoder.Model{e}, err
	}
	return []*encoder.Model{e, others}, nil
}

// loadOthers gives the encoder of other languages, or nil where a classifier of the operator's own has none.
func (c classifierSettings) loadOthers() (*encoder.Model, error) {
	if c.OthersModel == "" && c.Model != "" {
		return nil, nil
	}
	others, err := readModel("classifier.others_model", c.OthersModel, encoder.Decode, encoder.ShippedOthers)
	if err == nil && others.Meta.English() {
		err = &settingsError{errors.New("classifier.others_model: it reads English: set it as classifier.encoder_model")}
	}
	return others, err
}

func (c classifierSettings) loadEncoder() (*encoder.Model, error) {
	return readModel("classifier.encoder_model", c.EncoderModel, encoder.Decode, encoder.Shipped)
}

// readModel reads the model of a setting's file; without one it is the program's.
func readModel[T any](key, path string, decode func([]byte) (*T, error), shipped func() (*T, error)) (*T, error) {
	if path == "" {
		return shipped()
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &settingsError{fmt.Errorf("%s: %w", key, err)}
	}
	m, err := decode(b)
	if err != nil {
		return nil, &settingsError{fmt.Errorf("%s: %w", key, errors.Unwrap(err))}
	}
	return m, nil
}

// validateFiles reads models of the operator's own.
func (c classifierSettings) validateFiles() error {
	if !c.Enabled || c.Model == "" && c.EncoderModel == "" && c.OthersModel == "" {
		return nil
	}
	_, err := c.load()
	errs := []error{err}
	if c.Encoder != encoderOff && (c.EncoderModel != "" || c.OthersModel != "") {
		_, err = c.encoders()
		errs = append(errs, err)
	}
	if err = errors.Join(errs...); err != nil || !slices.Contains(encoderEfforts, c.Encoder) {
		return err
	}
	_, err = c.detector()
	return err
}

func (c classifierSettings) validate() error {
	if !slices.Contains(encoderEfforts, c.Encoder) {
		return fmt.Errorf("classifier.encoder: %q is not one of %s", c.Encoder, strings.Join(encoderEfforts, ", "))
	}
	if c.Memory < 0 || c.Memory > mostAnswers {
		return fmt.Errorf("classifier.memory: %d is not in 0..%d", c.Memory, mostAnswers)
	}
	return nil
}

// load reads the model.
func (c classifierSettings) load() (*classifier.Model, error) {
	return readModel("classifier.model", c.Model, classifier.Decode, classifier.Shipped)
}

type piiSettings struct {
	Enabled        bool `koanf:"enabled"`         // look for personal data and fill what the producer left out
	SanitizePrompt bool `koanf:"sanitize_prompt"` // store a prompt with personal data masked, too
	// Mask says where personal data is masked: off; before_judge, so that none reaches a judging model; or before_store,
	// which keeps no text without placeholders either.
	Mask string `koanf:"mask"`
}

// Policies of masking.
const (
	maskOff   = "off"
	maskJudge = "before_judge"
	maskStore = "before_store"
)

func (s piiSettings) validate() error {
	switch {
	case s.Mask != maskOff && s.Mask != maskJudge && s.Mask != maskStore:
		return fmt.Errorf("pii.mask: %q is not one of %s, %s, %s", s.Mask, maskOff, maskJudge, maskStore)
	case s.Mask == maskStore && !s.Enabled:
		return fmt.Errorf("pii.mask: %s needs pii.enabled", s.Mask)
	}
	return nil
}

func (s piiSettings) config() pii.Config { return pii.Config{SanitizePrompt: s.SanitizePrompt} }

// jobsSettings are what may be set about recurring jobs; each job's group bears its name.
type jobsSettings struct {
	Enabled            bool             `koanf:"enabled"`   // false: this process never leads
	TimeZone           string           `koanf:"time_zone"` // of schedules without one of their own
	VerdictRetry       retrySettings    `koanf:"verdict_retry"`
	AuditCurrentRepair scheduleSettings `koanf:"audit_current_repair"`
	Rollup             scheduleSettings `koanf:"rollup"`
	DuplicateReport    scheduleSettings `koanf:"duplicate_report"`
	BrokerTrim         scheduleSettings `koanf:"broker_trim"`
	Alarms             scheduleSettings `koanf:"alarms"`
	Retention          scheduleSettings `koanf:"retention"`
	Remediation        scheduleSettings `koanf:"remediation"`
	Gates              scheduleSettings `koanf:"gates"`
	JudgeSweep         scheduleSettings `koanf:"judge_sweep"`
}

type alarmsSettings struct {
	// PolicyFile is a YAML file of alarm policies over those that are shipped; "" for none.
	PolicyFile string `koanf:"policy_file"`
}

type scheduleSettings struct {
	// Schedule is five cron fields, @hourly, @every 10m or off; "CRON_TZ=Europe/Paris " may lead.
	Schedule string `koanf:"schedule"`
}

type retrySettings struct {
	Schedule string        `koanf:"schedule"`
	Attempts int           `koanf:"attempts"`
	Backoff  time.Duration `koanf:"backoff"` // before the first attempt; four times as long before each later one
}

func defaultSettings() settings {
	p, d, ch, k := pipeline.DefaultConfig(), detectors.DefaultPolicy(), chconn.DefaultConfig(), kafka.DefaultConfig()
	l, again, gw := ingest.DefaultLimits(), retry.DefaultConfig(), gateway.DefaultConfig()
	gw.Guard.HITLGateTimeout = 0 // that of gates
	return settings{
		DataDir:    defaultDataDir(),
		HTTP:       httpSettings{Addr: "127.0.0.1:8787"},
		Auth:       defaultAuth(),
		Limits:     limitsSettings{RequestsPerSecond: 1000, Burst: 2000},
		GraphQL:    graph.DefaultConfig(),
		Gateway:    gw,
		Kafka:      kafkaSettings{Group: k.Group, Partitions: 4, Replication: 1, SessionTimeout: k.SessionTimeout, RebalanceTimeout: k.RebalanceTimeout, Compression: kafkaconn.DefaultConfig().Compression},
		ClickHouse: clickhouseSettings{Addr: ch.Addr, Database: ch.Database, Username: ch.Username},
		Engine:     engineSettings{MemoryMB: 2048},
		Ingest:     ingestSettings{MessageBytes: l.Message, TextBytes: l.Text, Depth: l.Depth},
		Pipeline: pipelineSettings{Workers: p.Workers, BatchRows: p.BatchRows, BatchBytes: p.BatchBytes, BatchAge: p.BatchAge,
			FetchBytes: p.FetchBytes, DrainTimeout: p.DrainTimeout, BufferMB: p.BufferBytes >> 20, MemoryMB: 400, StallAfter: time.Minute},
		Join:       defaultJoin(),
		Rules:      rulesSettings{Poll: 5 * time.Second},
		Detect:     detectSettings{BiasAction: string(d.BiasAction), SafetyThreshold: d.SafetyThreshold.Float(), SafetyMode: string(d.SafetyMode), Timeout: d.DetectTimeout},
		Guard:      defaultGuard(),
		Classifier: classifierSettings{Enabled: true, Action: string(d.ClassifierAction), Encoder: "balanced", Memory: 1 << 15},
		PII:        piiSettings{Enabled: true, SanitizePrompt: pii.DefaultConfig().SanitizePrompt, Mask: maskJudge},
		Jobs: jobsSettings{Enabled: true, TimeZone: "UTC", VerdictRetry: retrySettings{"* * * * *", again.Attempts, again.Backoff},
			AuditCurrentRepair: scheduleSettings{"7 * * * *"}, Rollup: scheduleSettings{"*/2 * * * *"}, DuplicateReport: scheduleSettings{"30 2 * * *"}, BrokerTrim: scheduleSettings{"@hourly"},
			Alarms: scheduleSettings{"*/5 * * * *"}, Retention: scheduleSettings{"17 3 * * *"}, Remediation: scheduleSettings{"* * * * *"}, Gates: scheduleSettings{"* * * * *"}, JudgeSweep: scheduleSettings{"* * * * *"}},
		Judge:  defaultJudge(),
		Replay: mend.DefaultConfig(),
		Linear: defaultLinear(), Webhook: webhookSettings{Timeout: webhook.DefaultConfig().Timeout},
		Gates:     defaultGates(),
		Retention: defaultRetention(), Reveal: revealSettings{PerHour: 30}, Query: defaultQuery(),
		Evaluations: defaultEvaluations(),
		Log:         obs.LogConfig{Level: "info", Format: "auto"},
		Trace:       obs.TraceConfig{Ratio: 1},
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

// foreign are variables that are no settings: of flags, of tests, of Grafana, and of the applications in docs/ (address and
// credential), which whoever tries them has in the shell that runs this program.
var foreign = []string{"EVENHAND_CONFIG", "EVENHAND_SHARED", "EVENHAND_TOKEN", "EVENHAND_TOKEN_FILE", "EVENHAND_URL", "EVENHAND_KEY", "EVENHAND_CLICKHOUSE_HOST", "EVENHAND_GRAFANA_PASSWORD"}

// load reads the settings over the given defaults and reports every fault at once.
func (c *cli) load(s settings) (settings, error) { return c.read(s, settings.validate) }

// loadWhole is load with all that can be known to be wrong before a process of these roles starts: what only such a process has,
// such as secrets, and what stands in the files of rules and models.
func (c *cli) loadWhole(s settings, roles []string, embedded bool) (settings, error) {
	return c.read(s, func(s settings) error {
		errs := []error{s.validate(), s.validateFiles()}
		if slices.Contains(roles, roleAPI) {
			errs = append(errs, s.validateGateway())
		}
		if slices.Contains(roles, roleRemediation) {
			errs = append(errs, s.validateSending())
		}
		if !embedded && !slices.Equal(roles, []string{roleAnalyzer}) {
			k, h := s.kafka(), s.clickhouse()
			k.Compression = ""       // validate has looked at it
			if len(k.Brokers) == 0 { // 'run' says so; what stands beside is looked at all the same
				k.Brokers = kafkaconn.DefaultConfig().Brokers
			}
			if errs = append(errs, k.Validate()); len(h.Addr) > 0 {
				errs = append(errs, bare(h.Validate()))
			}
		}
		return errors.Join(errs...)
	})
}

func (c *cli) read(s settings, validate func(settings) error) (settings, error) {
	err := config.Load(&s, config.Sources{
		File: c.Config, Env: os.Environ(), Set: c.Set,
		Foreign: foreign,
		Alias:   map[string]string{"EVENHAND_API_KEY": "http.api_key"},
	})
	if port := os.Getenv("PORT"); port != "" {
		if host, _, e := net.SplitHostPort(s.HTTP.Addr); e == nil {
			s.HTTP.Addr = net.JoinHostPort(host, port)
		}
	}
	for _, t := range []*time.Duration{&s.Guard.HITLGateTimeout, &s.Gateway.Guard.HITLGateTimeout} {
		*t = cmp.Or(*t, s.Gates.Timeout) // doors that name no time take the gates' own
	}
	if err = errors.Join(err, validate(s)); err != nil {
		return s, &settingsError{err}
	}
	return s, nil
}

func (s settings) validate() error {
	var errs []error
	if s.DataDir == "" {
		errs = append(errs, errors.New("data_dir: is empty; name a folder, or leave it out for "+defaultDataDir()))
	}
	host, port, err := net.SplitHostPort(s.HTTP.Addr)
	if err != nil {
		errs = append(errs, fmt.Errorf("http.addr: %q is not host:port", s.HTTP.Addr))
	}
	errs = append(errs, s.validateAuth())
	if s.HTTP.Pprof && !loopback(host) {
		errs = append(errs, errors.New("http.pprof: profiles are served on a loopback address only; set http.addr to 127.0.0.1:PORT"))
	}
	if _, e := strconv.ParseUint(port, 10, 16); err == nil && e != nil {
		why := ""
		if os.Getenv("PORT") != "" {
			why = "; it is $PORT's, which stands above http.addr"
		}
		errs = append(errs, fmt.Errorf("http.addr: %q of %s is not a port%s", port, s.HTTP.Addr, why))
	}
	if s.HTTP.APIKey != "" && len(s.HTTP.APIKey) < 16 {
		errs = append(errs, errors.New("http.api_key: is shorter than 16 characters; make one with: openssl rand -hex 24"))
	}
	if s.Kafka.Partitions < 1 || s.Kafka.Partitions > 1024 {
		errs = append(errs, fmt.Errorf("kafka.partitions: %d is not in 1..1024", s.Kafka.Partitions))
	}
	if why := kafkaconn.ValidCompression(s.Kafka.Compression); why != nil {
		errs = append(errs, why)
	}
	if s.Kafka.Replication < 1 || s.Kafka.Replication > 9 {
		errs = append(errs, fmt.Errorf("kafka.replication: %d is not in 1..9", s.Kafka.Replication))
	}
	if _, e := s.interactionTopics(); e != nil {
		errs = append(errs, e)
	}
	if _, e := s.foreignTopics(); e != nil {
		errs = append(errs, e)
	}
	if _, e := s.prices(); e != nil {
		errs = append(errs, e)
	}
	if s.Pipeline.StallAfter < time.Second {
		errs = append(errs, fmt.Errorf("pipeline.stall_after: %v is below 1s", s.Pipeline.StallAfter))
	}
	if s.Engine.MemoryMB < 512 {
		errs = append(errs, fmt.Errorf("engine.memory_mb: %d is below 512", s.Engine.MemoryMB))
	}
	for _, p := range []struct {
		key  string
		port int
	}{{"native_port", s.Engine.NativePort}, {"http_port", s.Engine.HTTPPort}} {
		if p.port < 0 || p.port > 65535 {
			errs = append(errs, fmt.Errorf("engine.%s: %d is not a port", p.key, p.port))
		}
	}
	if s.Broker.Port < 0 || s.Broker.Port > 65535 {
		errs = append(errs, fmt.Errorf("broker.port: %d is not a port", s.Broker.Port))
	}
	for _, t := range []struct {
		key   string
		value *float64
	}{{"detect.bias_threshold", s.Detect.BiasThreshold}, {"detect.safety_threshold", &s.Detect.SafetyThreshold}, {"guard.bias_threshold", s.Guard.BiasThreshold}, {"guard.safety_threshold", &s.Guard.SafetyThreshold}} {
		if t.value != nil && *t.value > 0 && *t.value < audit.Score(1).Float() { // it would be read as 0
			errs = append(errs, fmt.Errorf("%s: %v is below 0.000001, the least that scores tell apart; 0 is everything above none", t.key, *t.value))
		}
	}
	if s.Broker.CapMB < 0 {
		errs = append(errs, fmt.Errorf("broker.cap_mb: %d is negative", s.Broker.CapMB))
	} else if least := capPerPartition * int64(s.Kafka.Partitions); s.Broker.CapMB > 0 && s.Broker.CapMB < least {
		errs = append(errs, fmt.Errorf("broker.cap_mb: %d is below %d: the largest message of each of the %d partitions (kafka.partitions) must fit, with room; raise it, or 0 for 8192 or a fifth of the disk",
			s.Broker.CapMB, least, s.Kafka.Partitions))
	}
	if _, e := time.LoadLocation(s.Jobs.TimeZone); e != nil || s.Jobs.TimeZone == "" || s.Jobs.TimeZone == "Local" {
		errs = append(errs, fmt.Errorf("jobs.time_zone: %q is not a time zone such as UTC or Europe/Paris", s.Jobs.TimeZone))
	}
	for _, j := range []struct{ name, schedule string }{{jobRetry, s.Jobs.VerdictRetry.Schedule}, {jobRepair, s.Jobs.AuditCurrentRepair.Schedule},
		{jobRollup, s.Jobs.Rollup.Schedule}, {jobReport, s.Jobs.DuplicateReport.Schedule}, {jobTrim, s.Jobs.BrokerTrim.Schedule}, {jobAlarms, s.Jobs.Alarms.Schedule},
		{jobRetention, s.Jobs.Retention.Schedule}, {jobRemediation, s.Jobs.Remediation.Schedule}, {jobGates, s.Jobs.Gates.Schedule}, {jobJudge, s.Jobs.JudgeSweep.Schedule}} {
		if _, e := jobs.ParseSchedule(j.schedule); e != nil {
			errs = append(errs, fmt.Errorf("jobs.%s.schedule: %w", j.name, e))
		}
	}
	if _, e := s.alarmPolicies(); e != nil {
		errs = append(errs, e)
	}
	errs = append(errs, s.validateGraphQL(), s.Gateway.Validate(), s.source().Validate(), s.sink().Validate(), s.retryConfig().Validate(), s.Gates.validate(), s.Retention.validate(), s.Reveal.validate(), s.Guard.validate(), s.PII.validate(), s.Classifier.validate(), s.Evaluations.config().Validate(), s.Replay.Validate(), s.Rules.validate(), store.Limits(s.Query).Validate(), s.pipelineConfig().Validate(), s.Join.config().Validate(), s.policy().Validate(), s.decoder().Validate(), s.OTLP.Validate(), s.Detect.validate(), s.validateTrackers(), s.Judge.validate(), s.Log.Validate(), s.Trace.Validate(),
		chschema.Options{Database: s.ClickHouse.Database, Cluster: s.ClickHouse.Cluster, Replicated: s.ClickHouse.Replicated}.Validate())
	return errors.Join(errs...)
}

// validateFiles looks into the files that the analyzer is made of and reports every fault at once.
func (s settings) validateFiles() error {
	errs := []error{s.Classifier.validateFiles(), s.Seal.validateFiles()}
	if s.Rules.Dir != "" {
		shipped, err := shippedPacks()
		if err != nil {
			return err
		}
		own, err := s.Rules.load(shipped)
		if err == nil && s.Detect.validate() == nil { // a rule of an own pack may have the id of a custom one
			_, err = gate.New(s.Detect.GateRules, s.Detect.GateExtraRules, byDetector(own).gates...)
		}
		errs = append(errs, bare(err))
	}
	return errors.Join(errs...)
}

// validate holds that rules of the gate and terms can be used.
func (d detectSettings) validate() error {
	_, err := gate.New(d.GateRules, d.GateExtraRules)
	errs := []error{bare(err)}
	c := terms.DefaultConfig()
	c.Categories, c.CustomTerms = d.TermsCategories, d.TermsCustom
	var faults interface{ Unwrap() []error }
	if errors.As(bare(c.Validate()), &faults) {
		for _, f := range faults.Unwrap() { // it calls them categories and custom_terms
			errs = append(errs, errors.New("detect.terms_"+strings.Replace(f.Error(), "custom_terms", "custom", 1)))
		}
	}
	return errors.Join(errs...)
}

// validateGateway holds that there is somebody to judge what the gateway asks for again, and somebody who looks for what it masks.
func (s settings) validateGateway() error {
	var errs []error
	if s.Gateway.Enabled && replays(s.Gateway) && !s.Judge.on() {
		errs = append(errs, errors.New("gateway.replay.rounds: "+llm.ErrOff.Error()))
	}
	if s.Gateway.Enabled && s.Gateway.Masks() && !s.PII.Enabled {
		errs = append(errs, errors.New("gateway.mask: needs pii.enabled: true, without which nothing looks for personal data; set that, or leave gateway.mask out, and mask out of gateway.overrides"))
	}
	return errors.Join(errs...)
}

// bare is a fault of a setting without the operation that found it.
func bare(err error) error {
	if s, ok := err.(*settingsError); ok { //nolint:errorlint // its own head is in the way, not one beneath it
		err = s.err
	}
	var e *audit.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}

// maxListed bounds what a command lists at once.
const maxListed = 100_000

// inRange holds a flag's number to its bounds.
func inRange(flag string, n, least, most int) error {
	if n < least || n > most {
		return &settingsError{fmt.Errorf("%s: %d is not in %d..%d", flag, n, least, most)}
	}
	return nil
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
	return pipeline.Config{Workers: p.Workers, BatchRows: p.BatchRows, BatchBytes: p.BatchBytes, BatchAge: p.BatchAge, FetchBytes: p.FetchBytes, BufferBytes: p.BufferMB << 20, DrainTimeout: p.DrainTimeout}
}

func (s settings) source() kafka.Config {
	c := kafka.DefaultConfig()
	c.Group, c.SessionTimeout, c.RebalanceTimeout = s.Kafka.Group, s.Kafka.SessionTimeout, s.Kafka.RebalanceTimeout
	return c
}

func (s settings) sink() clickhouse.Options {
	h := s.ClickHouse
	return clickhouse.Options{Cluster: h.Cluster, Replicated: h.Replicated, InsertQuorum: h.InsertQuorum, SequentialReads: h.SequentialReads}
}

func (s settings) retryConfig() retry.Config {
	return retry.Config{Attempts: s.Jobs.VerdictRetry.Attempts, Backoff: s.Jobs.VerdictRetry.Backoff}
}

func (s settings) policy() detectors.Policy {
	p := detectors.Policy{
		BiasAction: audit.Action(s.Detect.BiasAction), SafetyMode: audit.Action(s.Detect.SafetyMode),
		SafetyThreshold: audit.ScoreOf(s.Detect.SafetyThreshold), DetectTimeout: s.Detect.Timeout,
		ClassifierAction: audit.Action(s.Classifier.Action),
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
	c.Brokers, c.Compression = k.Brokers, k.Compression
	c.TLS = kafkaconn.TLS{Enabled: k.TLS, CAFile: k.TLSCAFile, CertFile: k.TLSCertFile, KeyFile: k.TLSKeyFile}
	c.SASL = kafkaconn.SASL{Mechanism: k.SASLMechanism, User: k.SASLUser, Password: k.SASLPassword}
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

package kafkaconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/evenhand/evenhand/audit"
	"github.com/evenhand/evenhand/internal/wait"
)

// The topics of Evenhand.
const (
	Interactions = "llm.interactions"
	DeadLetters  = "llm.interactions.dlq"
	AuditStream  = "bias.audit.stream"
	Judge        = "evenhand.judge"
	Remediation  = "evenhand.remediation"
	Feedback     = "evenhand.feedback"
	Jobs         = "evenhand.jobs"
	Decisions    = "evenhand.decisions"
	Checkpoints  = "evenhand.checkpoints"
	Calls        = "evenhand.calls"
)

// PipelineGroup is the consumer group that reads [Interactions].
const PipelineGroup = "evenhand.pipeline"

// RemediationIssues is the second consumer group of [Remediation], of what people did with issues.
const RemediationIssues = Remediation + ".issues"

// GroupsOf are the consumer groups that a topic's records wait for: what one of them has not committed is
// never deleted by the embedded broker. None means that the topic waits for nobody.
func GroupsOf(topic string) []string {
	switch group := GroupOf(topic); {
	case topic == Remediation:
		return []string{group, RemediationIssues}
	case group != "":
		return []string{group}
	}
	return nil
}

// GroupOf is the consumer group that does a topic's own work; "" where there is none.
func GroupOf(topic string) string {
	switch topic {
	case Interactions:
		return PipelineGroup
	case Judge, Remediation, Feedback, Jobs, Calls:
		return topic
	}
	return ""
}

// Sizes in bytes. Doors refuse what is above MaxMessage, so that the key, the headers and the batch
// around it still fit the topic's limit.
const (
	MaxMessage         = 900_000
	maxBatch           = 1_048_588 // Kafka's own default: said of every topic, for a cluster's may be less
	MaxDeadLetterBatch = 4 << 20
)

const (
	day   = 24 * 60 * 60 * 1000 // in milliseconds
	keep7 = 7 * day
)

// Topic is a topic as it must be: its partitions when created and its settings.
type Topic struct {
	Name       string
	Partitions int
	Config     map[string]string
}

// Topics lists all topics. partitions is the number for the topics that carry traffic; those that
// need one order over all records have one partition whatever it is.
func Topics(partitions int) []Topic {
	compacted := map[string]string{"cleanup.policy": "compact"}
	// Compaction keeps a key's last record; of decisions the first one holds.
	whole := map[string]string{"retention.ms": "-1", "retention.bytes": "-1"}
	return []Topic{
		topic(Interactions, partitions, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(DeadLetters, partitions, map[string]string{"retention.ms": strconv.Itoa(keep7), maxMessageBytes: strconv.Itoa(MaxDeadLetterBatch)}),
		topic(AuditStream, partitions, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(Calls, partitions, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(Judge, partitions, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(Remediation, 1, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(Feedback, 1, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(Jobs, 1, map[string]string{"retention.ms": strconv.Itoa(keep7)}),
		topic(Decisions, 1, whole),
		topic(Checkpoints, 1, compacted),
	}
}

// light are the topics without whole texts.
var light = []string{AuditStream, Judge, Remediation, Feedback, Jobs, Decisions, Checkpoints}

// TenantTopic is a topic of interactions that is bound to one tenant.
func TenantTopic(name string, partitions int) Topic {
	t := Topics(partitions)[0]
	t.Name = name
	return t
}

func topic(name string, partitions int, config map[string]string) Topic {
	all := map[string]string{"message.timestamp.type": "LogAppendTime", "cleanup.policy": "delete", maxMessageBytes: strconv.Itoa(maxBatch)}
	maps.Copy(all, config)
	return Topic{Name: name, Partitions: max(1, partitions), Config: all}
}

// TopicState is a topic as it is.
type TopicState struct {
	Name       string            `json:"name"`
	Partitions int               `json:"partitions"`
	Config     map[string]string `json:"config"` // the settings that Topics names
}

// Ensured tells what Ensure did.
type Ensured struct {
	Created  []string
	Warnings []string // settings that differ without harm to what is stored
}

// Ensure creates the topics that are missing and compares the settings of the others. A setting that
// would lose or misdate records is an error that names the topic, the setting and the mend; other
// differences are warnings. replication is the replication factor for new topics, -1 for the
// cluster's default. It is safe to call from several processes at once.
func Ensure(ctx context.Context, cfg Config, topics []Topic, replication int) (Ensured, error) {
	const op = "kafkaconn: ensure topics"
	var done Ensured
	cl, release, err := cfg.Client()
	if err != nil {
		return done, audit.E(op, audit.KindInvalid, err)
	}
	defer release()
	have, err := states(ctx, cl, topics)
	if err != nil {
		return done, E(op, err)
	}
	req := &kafka.CreateTopicsRequest{}
	var faults []error
	for _, t := range topics {
		if is, ok := have[t.Name]; ok {
			errs, warnings := compare(t, is)
			faults, done.Warnings = append(faults, errs...), append(done.Warnings, warnings...)
			continue
		}
		tc := kafka.TopicConfig{Topic: t.Name, NumPartitions: t.Partitions, ReplicationFactor: cmp.Or(replication, -1)}
		for _, k := range sortedKeys(t.Config) {
			tc.ConfigEntries = append(tc.ConfigEntries, kafka.ConfigEntry{ConfigName: k, ConfigValue: t.Config[k]})
		}
		req.Topics = append(req.Topics, tc)
	}
	if len(req.Topics) > 0 {
		res, err := create(ctx, cl, req)
		if err != nil {
			return done, E(op, err)
		}
		for _, t := range req.Topics {
			switch err := res.Errors[t.Topic]; {
			case err == nil:
				done.Created = append(done.Created, t.Topic)
			case errors.Is(err, kafka.TopicAlreadyExists): // somebody else was faster
			case errors.Is(err, kafka.TopicAuthorizationFailed):
				return done, E(op, fmt.Errorf("create %s: %w; it is missing, or there and this account may not describe it", t.Topic, err))
			default:
				return done, E(op, fmt.Errorf("create %s: %w", t.Topic, err))
			}
		}
	}
	return done, audit.E(op, audit.KindInvalid, errors.Join(faults...))
}

// patience is how long create waits for a cluster that cannot create topics yet.
const patience = 30 * time.Second

// create asks again where the cluster is not ready: the client learns of brokers in the background and knows no
// controller for a moment; and a controller fences brokers that it has not heard of for some seconds, because they
// start or their machine is short of processors.
func create(ctx context.Context, cl *kafka.Client, req *kafka.CreateTopicsRequest) (*kafka.CreateTopicsResponse, error) {
	began := time.Now()
	for fails := 1; ; fails++ {
		res, err := cl.CreateTopics(ctx, req)
		if !unready(res, err) || time.Since(began) > patience || !wait.For(ctx, wait.Backoff(100*time.Millisecond, fails)) {
			return res, err
		}
	}
}

// unready tells whether a later answer may be another one.
func unready(res *kafka.CreateTopicsResponse, err error) bool {
	if err != nil {
		return errors.Is(err, kafka.BrokerNotAvailable)
	}
	for _, err := range res.Errors {
		// What the cluster is too small for has the same code; that brokers are fenced stands in the message alone.
		if errors.Is(err, kafka.NotController) || errors.Is(err, kafka.InvalidReplicationFactor) && strings.Contains(err.Error(), "fenced") {
			return true
		}
	}
	return false
}

// List gives the state of those of the topics that exist, in their order.
func List(ctx context.Context, cfg Config, topics []Topic) ([]TopicState, error) {
	const op = "kafkaconn: list topics"
	cl, release, err := cfg.Client()
	if err != nil {
		return nil, audit.E(op, audit.KindInvalid, err)
	}
	defer release()
	have, err := states(ctx, cl, topics)
	if err != nil {
		return nil, E(op, err)
	}
	var out []TopicState
	for _, t := range topics {
		if s, ok := have[t.Name]; ok {
			out = append(out, s)
		}
	}
	return out, nil
}

// states asks for the topics that exist and those of their settings that we name. A principal that
// may not read settings gets states without them.
func states(ctx context.Context, cl *kafka.Client, topics []Topic) (map[string]TopicState, error) {
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	meta, err := cl.Metadata(ctx, &kafka.MetadataRequest{Topics: names})
	if err != nil {
		return nil, err
	}
	have := map[string]TopicState{}
	names = names[:0]
	for _, t := range meta.Topics {
		if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
			continue
		}
		if t.Error != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, t.Error)
		}
		have[t.Name] = TopicState{Name: t.Name, Partitions: len(t.Partitions), Config: map[string]string{}}
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return have, nil
	}
	wanted := []string{"retention.ms", "retention.bytes"}
	for _, t := range topics {
		wanted = slices.AppendSeq(wanted, maps.Keys(t.Config))
	}
	configs, err := settings(ctx, cl, names, wanted...)
	if err != nil {
		return nil, err
	}
	for name, config := range configs {
		if s, ok := have[name]; ok {
			maps.Copy(s.Config, config)
		}
	}
	return have, nil
}

// settings asks for settings of topics by name; what may not be read is left out.
func settings(ctx context.Context, cl *kafka.Client, topics []string, keys ...string) (map[string]map[string]string, error) {
	req := &kafka.DescribeConfigsRequest{}
	for _, name := range topics {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{ResourceType: kafka.ResourceTypeTopic, ResourceName: name})
	}
	res, err := cl.DescribeConfigs(ctx, req)
	if err != nil {
		return nil, err
	}
	have := map[string]map[string]string{}
	for _, r := range res.Resources {
		have[r.ResourceName] = map[string]string{}
		for _, e := range r.ConfigEntries {
			if slices.Contains(keys, e.ConfigName) {
				have[r.ResourceName][e.ConfigName] = e.ConfigValue
			}
		}
	}
	return have, nil
}

// Compare tells how topics that exist differ from what is wanted, as Ensure does: faults keep a process from starting.
func Compare(want []Topic, have []TopicState) (faults, warnings []string) {
	for _, is := range have {
		i := slices.IndexFunc(want, func(t Topic) bool { return t.Name == is.Name })
		if i < 0 {
			continue
		}
		errs, w := compare(want[i], is)
		for _, err := range errs {
			faults = append(faults, err.Error())
		}
		warnings = append(warnings, w...)
	}
	return faults, warnings
}

// compare sorts differences into faults (records would be lost, misdated or refused) and warnings.
func compare(want Topic, is TopicState) (faults []error, warnings []string) {
	if len(is.Config) == 0 {
		return nil, []string{fmt.Sprintf("topic %s: its settings could not be read; grant DescribeConfigs to have them checked", want.Name)}
	}
	if want.Partitions == 1 && is.Partitions > 1 && (want.Name == Jobs || want.Name == Decisions || want.Name == Checkpoints) {
		faults = append(faults, fmt.Errorf("topic %s: has %d partitions but needs one order over all records: create it again with 1 partition", want.Name, is.Partitions))
	}
	for _, k := range sortedKeys(want.Config) {
		w, v := want.Config[k], is.Config[k]
		if w == v {
			continue
		}
		mend := fmt.Sprintf("topic %s: %s is %q, wanted %q: %s", want.Name, k, v, w, alter(want.Name, k, w))
		switch k {
		case "message.timestamp.type":
			faults = append(faults, errors.New(mend))
		case maxMessageBytes:
			if n := number(v); n >= 0 && n < number(w) {
				if !slices.Contains(light, want.Name) {
					faults = append(faults, errors.New(mend))
				} else { // what it holds is small: batches are cut until they fit
					warnings = append(warnings, mend)
				}
			}
		case "cleanup.policy":
			// Keeping everything for ever, as the embedded broker does, is as good as compaction.
			if w != "compact" || is.Config["retention.ms"] != "-1" || is.Config["retention.bytes"] != "-1" {
				faults = append(faults, errors.New(mend))
			}
		case "retention.ms", "retention.bytes":
			if want.Name == Decisions { // of what was decided nothing may go
				faults = append(faults, errors.New(mend))
			} else if n := number(v); n >= 0 && (n < number(w) || number(w) < 0) {
				warnings = append(warnings, mend)
			}
		default:
			warnings = append(warnings, mend)
		}
	}
	return faults, warnings
}

// alter is the command that sets a setting right.
func alter(topic, key, value string) string {
	return fmt.Sprintf("kafka-configs --alter --entity-type topics --entity-name %s --add-config %s=%s", topic, key, value)
}

func number(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/evenhand/evenhand/ingest"
	"github.com/evenhand/evenhand/internal/kafkaconn"
	"github.com/evenhand/evenhand/pipeline"
	"github.com/evenhand/evenhand/sources/kafka"
)

// boundTopic is a topic that interactions are read from; a tenant that it is bound to is that of all its events.
type boundTopic struct{ topic, tenant string }

var topicName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// interactionTopics are llm.interactions, bound to nobody, and those of kafka.tenant_topics.
func (s settings) interactionTopics() ([]boundTopic, error) {
	all := []boundTopic{{topic: kafkaconn.Interactions}}
	var errs []error
	for _, entry := range s.Kafka.TenantTopics {
		topic, tenant, ok := strings.Cut(entry, "=")
		reserved := slices.ContainsFunc(kafkaconn.Topics(1), func(t kafkaconn.Topic) bool { return t.Name == topic })
		switch {
		case !ok || !topicName.MatchString(topic) || !ingest.ValidTenant(tenant):
			errs = append(errs, fmt.Errorf("kafka.tenant_topics: %q is not TOPIC=TENANT, such as acme.llm.interactions=acme", entry))
		case reserved:
			errs = append(errs, fmt.Errorf("kafka.tenant_topics: %s is a topic that all tenants share", topic))
		case slices.ContainsFunc(all, func(b boundTopic) bool { return b.topic == topic }):
			errs = append(errs, fmt.Errorf("kafka.tenant_topics: %s stands there twice", topic))
		}
		all = append(all, boundTopic{topic, tenant})
	}
	return all, errors.Join(errs...)
}

// topics are all that must be there.
func (s settings) topics() []kafkaconn.Topic {
	all := kafkaconn.Topics(s.Kafka.Partitions)
	bound, _ := s.interactionTopics() // validated when the settings were read
	for _, b := range bound[1:] {
		all = append(all, kafkaconn.TenantTopic(b.topic, s.Kafka.Partitions))
	}
	return all
}

// sourceOf reads one topic; each has a consumer group of its own.
func (s settings) sourceOf(b boundTopic) kafka.Config {
	c := s.source()
	if b.topic != kafkaconn.Interactions {
		c.Topic, c.Group = b.topic, c.Group+"."+b.topic
	}
	return c
}

func (s settings) decoderOf(b boundTopic) *ingest.Decoder {
	o := s.decoder()
	o.Tenant = b.tenant
	return ingest.NewDecoder(o)
}

// pipelineConfigOf shares the memory among the topics' pipelines.
func (s settings) pipelineConfigOf(topics int) pipeline.Config {
	c := s.pipelineConfig()
	c.BufferBytes = max(c.BufferBytes/int64(topics), 2*c.BatchBytes)
	return c
}

// topicPipeline reads one topic.
type topicPipeline struct {
	*pipeline.Pipeline
	topic string
}

// progress is that of all pipelines together.
func (st *stack) progress() (all pipeline.Progress) {
	for i, p := range st.pipelines {
		one := p.Progress()
		all.Partitions += one.Partitions
		all.Lag += one.Lag
		all.Locating = all.Locating || one.Locating
		if !one.Oldest.IsZero() && (all.Oldest.IsZero() || one.Oldest.Before(all.Oldest)) {
			all.Oldest = one.Oldest
		}
		if one.LastFlush.After(all.LastFlush) {
			all.LastFlush = one.LastFlush
		}
		if i == 0 || one.Moved.Before(all.Moved) {
			all.Moved = one.Moved
		}
	}
	return all
}

// stalled says which pipeline stands still, if one does.
func (st *stack) stalled(now time.Time) error {
	for _, p := range st.pipelines {
		if err := p.Progress().Stalled(now, st.settings.Pipeline.StallAfter); err != nil {
			return fmt.Errorf("%s: %w", p.topic, err)
		}
	}
	return nil
}

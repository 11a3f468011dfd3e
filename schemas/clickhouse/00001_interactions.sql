-- +goose NO TRANSACTION
-- +goose Up

-- One row for each content of each event: facts without personal text. The version is the complement
-- of broker time and place, so the first delivery wins however often a range is written.
-- -1 is "unknown" in Int8 flags and in token, latency and cost columns.
CREATE TABLE IF NOT EXISTS {{db}}.interactions {{cluster}}
(
    tenant_id               String,
    event_day               Date,
    event_id                UUID,
    content_digest          FixedString(32),
    version                 UInt64,

    given_id                String,
    id_assumed              UInt8,
    event_ts                DateTime64(3, 'UTC'),
    sort_ts                 DateTime64(3, 'UTC'),
    time_assumed            UInt8,
    time_suspect            UInt8,

    topic                   String,
    epoch                   Int32,
    partition               Int32,
    offset                  Int64,
    broker_ts               DateTime64(3, 'UTC'),

    trace_id                FixedString(32),
    span_id                 String,
    conversation            String,
    decision_id             String,
    app                     LowCardinality(String),
    domain                  LowCardinality(String),
    domain_given            String,
    provider                LowCardinality(String),
    model                   LowCardinality(String),
    template_id             String,
    template_version        String,

    prompt_tokens           Int32,
    response_tokens         Int32,
    latency_ms              Int32,
    cost_micro_usd          Int64,
    sensitivity_score       String,
    contained_pii           Int8,
    contained_proprietary   Int8,
    contained_customer_data Int8,
    status                  String,
    incomplete              UInt8,
    without_content         UInt8,
    prompt_chars            UInt32,
    response_chars          UInt32,
    truncated               UInt8,

    written_at              DateTime64(3, 'UTC') DEFAULT now64(3),

    INDEX idx_interactions_event_id event_id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX idx_interactions_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 4,
    INDEX idx_interactions_offset offset TYPE minmax GRANULARITY 1
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(event_day)
ORDER BY (tenant_id, event_day, event_id, content_digest)
{{settings}};

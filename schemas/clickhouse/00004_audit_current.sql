-- +goose NO TRANSACTION
-- +goose Up

-- The flat read model of lists and filters, ordered by time. The version is the number of known facts
-- above the complement of broker time and place: more facts win, among equals the first delivery.
-- Granules are small because a page of a list reads a few rows here and there.
-- kinds are the distinct kinds of all findings in the response, bias_types those of bias detectors.
CREATE TABLE IF NOT EXISTS {{db}}.audit_current {{cluster}}
(
    tenant_id         String,
    event_day         Date,
    sort_ts           DateTime64(3, 'UTC'),
    event_id          UUID,
    content_digest    FixedString(32),
    version           UInt64,

    event_ts          DateTime64(3, 'UTC'),
    broker_ts         DateTime64(3, 'UTC'),
    time_assumed      UInt8,
    time_suspect      UInt8,
    trace_id          FixedString(32),
    app               LowCardinality(String),
    domain            LowCardinality(String),
    provider          LowCardinality(String),
    model             LowCardinality(String),
    sensitivity_score String,
    status            String,
    without_content   UInt8,
    truncated         UInt8,

    analysis_status   String,
    bias_detected     UInt8,
    flagged           UInt8,
    unsafe            UInt8,
    gated             UInt8,
    bias_types        Array(LowCardinality(String)),
    kinds             Array(LowCardinality(String)),
    max_severity      UInt8,
    n_findings        UInt16,
    confidence        Int32,
    bias_sum          Int64,
    safety_sum        Int64,
    toxicity          Int64,
    pii               Int64,
    hallucination     Int64,
    threshold         Int64,
    action            String,
    mitigation        String,
    human_reviewed    UInt8,
    id_conflict       UInt8,

    topic             String,
    partition         Int32,
    offset            Int64,
    written_at        DateTime64(3, 'UTC') DEFAULT now64(3),

    INDEX idx_audit_event_id event_id TYPE bloom_filter(0.01) GRANULARITY 16,
    INDEX idx_audit_trace_id trace_id TYPE bloom_filter(0.01) GRANULARITY 16,
    INDEX idx_audit_bias_detected bias_detected TYPE minmax GRANULARITY 8,
    INDEX idx_audit_bias_type bias_types TYPE bloom_filter(0.01) GRANULARITY 8,
    INDEX idx_audit_bias_confidence confidence TYPE minmax GRANULARITY 8
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(event_day)
ORDER BY (tenant_id, event_day, sort_ts, event_id, content_digest)
{{settings "index_granularity = 1024"}};

-- +goose NO TRANSACTION
-- +goose Up

-- Facts of analysis; nothing overwrites another result. The hot path writes one row an event and
-- content (analyzer 'hot', analyzer_version '', version as in interactions). Scores are millionths.
CREATE TABLE IF NOT EXISTS {{db}}.verdicts {{cluster}}
(
    tenant_id        String,
    event_day        Date,
    event_id         UUID,
    analyzer         LowCardinality(String),
    analyzer_version String,
    result_id        UUID,
    version          UInt64,

    content_digest   FixedString(32),
    rule_set         String,
    status           String,
    reason           String,
    failed_by        Array(String),

    bias_detected    UInt8,
    bias_types       Array(LowCardinality(String)),
    bias_sum         Int64,
    safety_sum       Int64,
    threshold        Int64,
    flagged          UInt8,
    unsafe           UInt8,
    gated            UInt8,
    action           String,
    confidence       Int32,
    max_severity     UInt8,
    mitigation       String,

    findings Nested
    (
        kind         LowCardinality(String),
        rule         String,
        rule_version String,
        ground       String,
        severity     UInt8,
        score        Int64,
        confidence   Int32,
        side         String,
        start        UInt32,
        end          UInt32,
        abusive      UInt8,
        entity       String
    ),
    scores Nested
    (
        name         String,
        value        Int64
    ),

    analysis_ts      DateTime64(3, 'UTC'),
    duration_us      UInt32,
    written_at       DateTime64(3, 'UTC') DEFAULT now64(3),

    INDEX idx_verdicts_event_id event_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(event_day)
ORDER BY (tenant_id, event_day, event_id, analyzer, analyzer_version, result_id)
{{settings}};

-- +goose NO TRANSACTION
-- +goose Up

-- Every transition of every breach: a row a decision on evenhand.decisions (kind 'breach', of the key the
-- number seq), made of that decision alone. Rates are shares; the window is [from, to).
CREATE TABLE IF NOT EXISTS {{db}}.breaches {{cluster}}
(
    tenant_id       String,
    breach_id       UUID,
    seq             UInt32,
    version         UInt64,
    state           LowCardinality(String),
    reason          LowCardinality(String),
    policy          LowCardinality(String),
    tier            LowCardinality(String),
    domain          LowCardinality(String),
    kind            LowCardinality(String),
    rule_group      LowCardinality(String),
    generation      UInt32,
    opened_at       DateTime64(3, 'UTC'),
    changed_at      DateTime64(3, 'UTC'),
    window_from     DateTime('UTC'),
    window_to       DateTime('UTC'),
    n               UInt64,
    k               UInt64,
    rate            Float64,
    lower           Float64,
    upper           Float64,
    baseline        Float64,
    baseline_n      UInt64,
    p_value         Float64,
    severity        UInt8,
    rule_set        String,
    top_rules       Nested(rule String, interactions UInt64),
    event_ids       Array(UUID),
    mitigation      LowCardinality(String),
    written_at      DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, breach_id, seq)
{{settings}};

-- The newest transition of each breach.
CREATE OR REPLACE VIEW {{db}}.current_breaches {{cluster}} AS
SELECT *
FROM {{db}}.breaches FINAL
ORDER BY tenant_id, breach_id, seq DESC
LIMIT 1 BY tenant_id, breach_id;

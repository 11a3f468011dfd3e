-- +goose NO TRANSACTION
-- +goose Up

-- Cells (tenant, domain, kind; '' is any bias) whose rate over the window that ends at hour lies above
-- their baseline, not yet beyond doubt: for dashboards, never a ticket. A row that a later look at the
-- same hour no longer finds gets active 0.
CREATE TABLE IF NOT EXISTS {{db}}.alarm_warnings {{cluster}}
(
    tenant_id   String,
    domain      LowCardinality(String),
    kind        LowCardinality(String),
    hour        DateTime('UTC'),
    version     UInt64,
    active      UInt8,
    policy      LowCardinality(String),
    window_from DateTime('UTC'),
    n           UInt64,
    k           UInt64,
    lower       Float64,
    upper       Float64,
    baseline    Float64,
    baseline_n  UInt64,
    rule_set    String,
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(hour)
ORDER BY (tenant_id, hour, domain, kind)
{{settings}};

-- +goose NO TRANSACTION
-- +goose Up

-- Counts by event hour that outlive the rows they were counted from. Each row is recomputed from the
-- current facts as a whole; a recomputation writes zeros for keys that it no longer finds. version is
-- the milliseconds of the recomputation; the highest bit freezes a row, so that nothing overrides it.
--
-- dim     value            k counts
-- all     ''               interactions received; only here n (the analysed ones) and cost are set
-- status  done, failed, …  by analysis status
-- outcome detected, flagged, unsafe, gated
-- kind    a taxonomy key   analysed interactions with a finding of that kind in the response, by its strongest severity
-- bias    a taxonomy key   the same for the kinds of bias detectors
-- mitigation               analysed interactions by suggested mitigation
--
-- late is the part of k (of n in dim all) that reached the broker over 48 hours after its event: it is
-- shown and never alarms. Bias of an interaction that a reviewer dismissed is not counted.
CREATE TABLE IF NOT EXISTS {{db}}.rollup_hourly {{cluster}}
(
    tenant_id      String,
    dim            LowCardinality(String),
    hour           DateTime('UTC'),
    app            LowCardinality(String),
    domain         LowCardinality(String),
    model          LowCardinality(String),
    rule_set       LowCardinality(String),
    value          LowCardinality(String),
    severity       UInt8,
    version        UInt64,
    n              UInt64,
    k              UInt64,
    late           UInt64,
    cost_micro_usd Int64,
    written_at     DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(hour)
ORDER BY (tenant_id, dim, hour, app, domain, model, rule_set, value, severity)
{{settings}};

-- The same by event day, summed from the hours.
CREATE TABLE IF NOT EXISTS {{db}}.rollup_daily {{cluster}}
(
    tenant_id      String,
    dim            LowCardinality(String),
    day            Date,
    app            LowCardinality(String),
    domain         LowCardinality(String),
    model          LowCardinality(String),
    rule_set       LowCardinality(String),
    value          LowCardinality(String),
    severity       UInt8,
    version        UInt64,
    n              UInt64,
    k              UInt64,
    late           UInt64,
    cost_micro_usd Int64,
    written_at     DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
PARTITION BY toYear(day)
ORDER BY (tenant_id, dim, day, app, domain, model, rule_set, value, severity)
{{settings}};

-- Months whose rollups are final, for their rows were or will be deleted.
CREATE TABLE IF NOT EXISTS {{db}}.rollup_frozen {{cluster}}
(
    tenant_id  String,
    month      Date,
    version    UInt64,
    frozen_at  DateTime64(3, 'UTC'),
    rows       UInt64,
    written_at DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, month)
{{settings}};

-- Which version of each kind's rules a rule set holds. A kind's baseline begins anew with its version.
CREATE TABLE IF NOT EXISTS {{db}}.rule_sets {{cluster}}
(
    rule_set     String,
    kind         LowCardinality(String),
    version      UInt64,
    rule_version String,
    first_seen   DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
ORDER BY (rule_set, kind)
{{settings}};

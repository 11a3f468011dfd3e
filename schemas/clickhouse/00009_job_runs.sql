-- +goose NO TRANSACTION
-- +goose Up

-- One row for each run of a job, written when it has ended. The slot is when it was due; watermark is up
-- to where the run has looked, the epoch when it has none. Result is JSON: figures and up to ten ids.
CREATE TABLE IF NOT EXISTS {{db}}.job_runs {{cluster}}
(
    job         LowCardinality(String),
    started_at  DateTime64(3, 'UTC'),
    run_id      UUID,
    version     UInt64,
    slot        DateTime64(3, 'UTC'),
    finished_at DateTime64(3, 'UTC'),
    trigger     LowCardinality(String),
    status      LowCardinality(String),
    detail      String,
    host        String,
    result      String,
    watermark   DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(started_at)
ORDER BY (job, started_at, run_id)
{{settings}};

-- Jobs look for what was written since their last run, and for verdicts that are not final: without
-- these they would read every row each time. Parts from before get them when they are merged.
ALTER TABLE {{db}}.interactions {{cluster}} ADD INDEX IF NOT EXISTS idx_interactions_written_at written_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{db}}.verdicts {{cluster}} ADD INDEX IF NOT EXISTS idx_verdicts_written_at written_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{db}}.audit_current {{cluster}} ADD INDEX IF NOT EXISTS idx_audit_analysis_status analysis_status TYPE set(8) GRANULARITY 8;

-- +goose NO TRANSACTION
-- +goose Up

-- Dashboards ask what was written in a range of time, and these tables are ordered by offset, in which
-- time grows too. Parts from before get the index when they are merged.
ALTER TABLE {{db}}.ingest_batches {{cluster}} ADD INDEX IF NOT EXISTS idx_ingest_written_at written_at TYPE minmax GRANULARITY 1;
ALTER TABLE {{db}}.rejected {{cluster}} ADD INDEX IF NOT EXISTS idx_rejected_written_at written_at TYPE minmax GRANULARITY 1;

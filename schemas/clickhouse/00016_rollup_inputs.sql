-- +goose NO TRANSACTION
-- +goose Up

-- What the rollups count by, beside the columns that were there. severities is parallel to kinds: the
-- strongest severity of each in the response, 0 for kinds without one. review is confirmed or dismissed
-- as the newest review says, '' when there is none or it is unsure. Rows from before have an empty
-- rule_set: the job audit_current_repair finds them by that and writes them anew.
ALTER TABLE {{db}}.audit_current {{cluster}} ADD COLUMN IF NOT EXISTS rule_set LowCardinality(String) AFTER analysis_status;
ALTER TABLE {{db}}.audit_current {{cluster}} ADD COLUMN IF NOT EXISTS severities Array(UInt8) AFTER kinds;
ALTER TABLE {{db}}.audit_current {{cluster}} ADD COLUMN IF NOT EXISTS cost_micro_usd Int64 AFTER truncated;
ALTER TABLE {{db}}.audit_current {{cluster}} ADD COLUMN IF NOT EXISTS review LowCardinality(String) AFTER human_reviewed;

-- Rollups look for what was written since their last run.
ALTER TABLE {{db}}.audit_current {{cluster}} ADD INDEX IF NOT EXISTS idx_audit_written_at written_at TYPE minmax GRANULARITY 8;

-- +goose NO TRANSACTION
-- +goose Up

-- Of verdicts of the judge (analyzer 'judge', analyzer_version the attempt, rule_set the model and the prompt's version): a
-- digest of what was judged, by which an equal text is answered without a call, and what the calls cost. Zero in rows of others.
-- The judge's words lie in interaction_texts (kind 'judge_verdict', source_id the result's id).
ALTER TABLE {{db}}.verdicts {{cluster}}
    ADD COLUMN IF NOT EXISTS input_digest FixedString(32) AFTER duration_us,
    ADD COLUMN IF NOT EXISTS calls UInt16 AFTER input_digest,
    ADD COLUMN IF NOT EXISTS tokens_in UInt32 AFTER calls,
    ADD COLUMN IF NOT EXISTS tokens_out UInt32 AFTER tokens_in,
    ADD COLUMN IF NOT EXISTS cost_micro_usd Int64 AFTER tokens_out,
    ADD INDEX IF NOT EXISTS idx_verdicts_input_digest input_digest TYPE bloom_filter(0.01) GRANULARITY 4;

-- As in migration 21. A verdict of the judge that did not come about says nothing about the interaction: it is kept, and
-- never current, so that the record stays what all others made of it.
CREATE OR REPLACE VIEW {{db}}.current_verdicts {{cluster}} AS
SELECT *
FROM {{db}}.verdicts FINAL
WHERE analyzer != 'judge' OR status NOT IN ('failed', 'skipped', 'abandoned')
ORDER BY tenant_id, event_day, event_id, content_digest, analyzer, analysis_ts DESC, result_id DESC
LIMIT 1 BY tenant_id, event_day, event_id, content_digest, analyzer
SETTINGS do_not_merge_across_partitions_select_final = 1;

-- +goose NO TRANSACTION
-- +goose Up

-- The current verdicts: of each event, content and analyzer the newest fact.
CREATE OR REPLACE VIEW {{db}}.current_verdicts {{cluster}} AS
SELECT *
FROM {{db}}.verdicts FINAL
ORDER BY tenant_id, event_day, event_id, content_digest, analyzer, analysis_ts DESC, result_id DESC
LIMIT 1 BY tenant_id, event_day, event_id, content_digest, analyzer
SETTINGS do_not_merge_across_partitions_select_final = 1;

-- One row a finding of a current verdict. Scores are decimals; spans count code points.
CREATE OR REPLACE VIEW {{db}}.findings {{cluster}} AS
SELECT
    tenant_id, event_day, event_id, content_digest, analyzer, result_id, rule_set, analysis_ts,
    f_kind AS kind,
    f_rule AS rule,
    f_rule_version AS rule_version,
    f_ground AS ground,
    f_severity AS severity_level,
    transform(f_severity, [1, 2, 3, 4], ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], '') AS severity,
    f_score / 1000000 AS score,
    f_confidence / 1000000 AS confidence,
    f_side AS side,
    f_start AS span_start,
    f_end AS span_end,
    CAST(f_abusive AS Bool) AS abusive,
    f_entity AS entity
FROM {{db}}.current_verdicts
ARRAY JOIN
    findings.kind AS f_kind,
    findings.rule AS f_rule,
    findings.rule_version AS f_rule_version,
    findings.ground AS f_ground,
    findings.severity AS f_severity,
    findings.score AS f_score,
    findings.confidence AS f_confidence,
    findings.side AS f_side,
    findings.start AS f_start,
    findings.end AS f_end,
    findings.abusive AS f_abusive,
    findings.entity AS f_entity;

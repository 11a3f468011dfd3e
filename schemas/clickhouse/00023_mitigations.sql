-- +goose NO TRANSACTION
-- +goose Up

-- The audit record as in migration 21, with two more types of mitigation: a term to replace and a prompt to
-- rephrase, the weakest of all. Which term and which wording is in the rule, not in the row.
CREATE OR REPLACE VIEW {{db}}.llm_interaction_audit {{cluster}} AS
SELECT
    i.event_id AS id,
    i.tenant_id AS tenant_id,
    nullIf(JSONExtractString(t.user, 'id'), '') AS user_id,
    nullIf(JSONExtractString(t.user, 'email'), '') AS user_email,
    nullIf(JSONExtractString(t.user, 'role'), '') AS user_role,
    nullIf(t.context, '') AS query_context,
    multiIf(text_state = 'dropped', '[dropped]', t.query != '', t.query,
        t.messages = '' OR arrayExists(m -> JSONExtractString(m, 'role') = 'user', JSONExtractArrayRaw(t.messages)), t.prompt,
        '') AS original_query,
    i.provider AS llm_provider,
    i.model AS llm_model,
    nullIf(t.sanitized_prompt, '') AS sanitized_prompt,
    multiIf(t.response_json != '', t.response_json, t.response != '', toJSONString(t.response), NULL) AS llm_response,
    if(i.prompt_tokens < 0, NULL, i.prompt_tokens) AS prompt_tokens,
    if(i.response_tokens < 0, NULL, i.response_tokens) AS response_tokens,
    if(i.cost_micro_usd < 0, NULL, i.cost_micro_usd / 1000000) AS estimated_cost_usd,
    nullIf(t.redaction_summary, '') AS redaction_summary,
    nullIf(i.sensitivity_score, '') AS sensitivity_score,
    if(i.contained_pii < 0, NULL, CAST(i.contained_pii AS Bool)) AS contained_pii,
    if(i.contained_proprietary < 0, NULL, CAST(i.contained_proprietary AS Bool)) AS contained_proprietary,
    if(i.contained_customer_data < 0, NULL, CAST(i.contained_customer_data AS Bool)) AS contained_customer_data,
    i.status AS status,
    nullIf(t.error, '') AS error_message,
    i.event_ts AS log_timestamp,
    CAST(v.bias_detected AS Bool) AS bias_detected,
    v.bias_types AS bias_type,
    toJSONString(mapSort(mapApply((name, value) -> (name, least(value, 1000000) / 1000000), v.scores))) AS bias_score,
    CAST(toDecimal32(intDiv(toInt32(v.confidence) + 5000, 10000), 2) / 100 AS Decimal(5, 2)) AS bias_confidence_score,
    multiIf(
        (arrayFilter(t -> t != '', arrayMap(e -> o.texts[concat('outside_mitigation ', e.2)], v.outside)) AS outside_mitigations)[-1] != '', outside_mitigations[-1],
        v.mitigation = '', NULL, toJSONString(map('type', v.mitigation, 'details', transform(v.mitigation,
        ['BLOCK_RESPONSE', 'HUMAN_APPROVAL', 'REDACT_PII', 'REPHRASE_RESPONSE', 'HUMAN_REVIEW', 'REPHRASE_PROMPT', 'REPLACE_TERM'],
        ['The response should not reach the user',
         'A person must approve the action before it is carried out',
         'Personal data in the response should be masked',
         'The response should be rephrased without the findings',
         'A person should look at the response',
         'The prompt should be rephrased so that groups are described alike',
         'Some terms should be replaced'], '')))) AS mitigation_action,
    if(v.n_verdicts = 0, NULL, concat(trimRight(toJSONString(CAST((
        v.analysis_status, v.bias_detected = 1, v.flagged = 1, v.unsafe = 1, v.gated = 1, v.action,
        v.bias_sum / 1000000, v.safety_sum / 1000000, v.threshold / 1000000,
        v.analyzers,
        arrayMap(f -> (
            f.1, f.2, f.3, f.4, f.5,
            transform(f.6, [1, 2, 3, 4], ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], ''),
            f.7 / 1000000, f.8 / 1000000, f.9, [f.10, f.11],
            if(text_state = 'dropped', NULL,
               substringUTF8(if(f.9 = 'input', t.prompt, t.response), f.10 + 1, f.11 - f.10))
        ), v.findings)
    ), 'Tuple(status String, bias_detected Bool, flagged Bool, unsafe Bool, gated Bool, action String, bias_sum Float64, safety_sum Float64, threshold Float64, analyzers Array(Tuple(analyzer String, status String, reason String, rule_set String, result_id String)), findings Array(Tuple(analyzer String, rule String, rule_version String, kind String, ground String, severity String, score Float64, confidence Float64, side String, span Array(UInt32), evidence Nullable(String))))')), '}'),
        if(empty(arraySort(arrayFilter(t -> t.2 != '', arrayMap(e -> (e.3, o.texts[concat('outside_report ', e.2)]), v.outside))) AS outside_reports), '',
            concat(',"outside":{', arrayStringConcat(arrayMap(t -> concat(toJSONString(t.1), ':', t.2), outside_reports), ','), '}')), '}')) AS bias_report_summary,
    CAST(r.decision != '' AS Bool) AS human_reviewed,
    if(r.decision = '', NULL, toJSONString(CAST((r.decision, r.tags), 'Tuple(decision String, tags Array(String))'))) AS human_bias_tag,
    nullIf(o.texts[concat('review_note ', toString(r.review_id))], '') AS review_notes,
    CAST(v.bias_detected = 1 AND r.decision != 'dismissed' OR r.decision = 'confirmed' AS Bool) AS effective_bias,
    multiIf(t.n_texts > 0, 'present', i.without_content = 1, 'present', 'dropped') AS text_state,
    if(v.n_verdicts = 0, 'pending', v.analysis_status) AS bias_analysis_status,
    i.trace_id AS trace_id,
    i.event_day AS event_day,
    i.content_digest AS content_digest,
    i.app AS application,
    i.domain AS domain
FROM {{db}}.interactions AS i FINAL
LEFT JOIN
(
    SELECT
        tenant_id, event_day, event_id, content_digest,
        count() AS n_verdicts,
        max(bias_detected) AS bias_detected,
        max(flagged) AS flagged,
        max(unsafe) AS unsafe,
        max(gated) AS gated,
        arraySort(groupUniqArrayArray(bias_types)) AS bias_types,
        maxMap(CAST((scores.name, scores.value), 'Map(String, Int64)')) AS scores,
        argMax(c.confidence, (c.bias_detected, c.max_severity, c.confidence, c.analyzer)) AS confidence,
        ['', 'REPLACE_TERM', 'REPHRASE_PROMPT', 'HUMAN_REVIEW', 'REPHRASE_RESPONSE', 'REDACT_PII', 'HUMAN_APPROVAL', 'BLOCK_RESPONSE'][max(
            indexOf(['', 'REPLACE_TERM', 'REPHRASE_PROMPT', 'HUMAN_REVIEW', 'REPHRASE_RESPONSE', 'REDACT_PII', 'HUMAN_APPROVAL', 'BLOCK_RESPONSE'], mitigation))] AS mitigation,
        ['', 'none', 'log', 'warn', 'gate', 'block'][max(
            indexOf(['', 'none', 'log', 'warn', 'gate', 'block'], action))] AS action,
        ['', 'done', 'skipped', 'partial', 'pending', 'failed', 'abandoned'][max(
            indexOf(['', 'done', 'skipped', 'partial', 'pending', 'failed', 'abandoned'], status))] AS analysis_status,
        maxIf(bias_sum, analyzer = 'hot') AS bias_sum,
        maxIf(safety_sum, analyzer = 'hot') AS safety_sum,
        maxIf(threshold, analyzer = 'hot') AS threshold,
        arraySort(groupArray((toString(analyzer), status, reason, rule_set, toString(result_id)))) AS analyzers,
        arraySort(groupArrayIf((toUnixTimestamp64Milli(analysis_ts), toString(result_id), analyzer_version), startsWith(toString(analyzer), 'external:'))) AS outside,
        arrayFlatten(groupArray(arrayMap(
            (kind, rule, rule_version, ground, severity, score, confidence, side, start, end) ->
                (toString(analyzer), rule, rule_version, kind, ground, severity, score, confidence, side, start, end),
            findings.kind, findings.rule, findings.rule_version, findings.ground, findings.severity,
            findings.score, findings.confidence, findings.side, findings.start, findings.end))) AS findings
    FROM {{db}}.current_verdicts AS c
    GROUP BY tenant_id, event_day, event_id, content_digest
) AS v ON v.tenant_id = i.tenant_id AND v.event_day = i.event_day AND v.event_id = i.event_id AND v.content_digest = i.content_digest
LEFT JOIN
(
    SELECT
        tenant_id, event_day, event_id, source_id,
        count() AS n_texts,
        anyIf(text, kind = 'user') AS user,
        anyIf(text, kind = 'context') AS context,
        anyIf(text, kind = 'query') AS query,
        anyIf(text, kind = 'messages') AS messages,
        anyIf(text, kind = 'prompt') AS prompt,
        anyIf(text, kind = 'response') AS response,
        anyIf(text, kind = 'response_json') AS response_json,
        anyIf(text, kind = 'sanitized_prompt') AS sanitized_prompt,
        anyIf(text, kind = 'redaction_summary') AS redaction_summary,
        anyIf(text, kind = 'error') AS error
    FROM {{db}}.interaction_texts FINAL
    GROUP BY tenant_id, event_day, event_id, source_id
) AS t ON t.tenant_id = i.tenant_id AND t.event_day = i.event_day AND t.event_id = i.event_id AND t.source_id = i.content_digest
LEFT JOIN
(
    SELECT
        tenant_id, event_day, event_id,
        CAST((groupArray(concat(kind, ' ', UUIDNumToString(toFixedString(substring(source_id, 1, 16), 16)))), groupArray(text)), 'Map(String, String)') AS texts
    FROM {{db}}.interaction_texts FINAL
    WHERE kind IN ('outside_report', 'outside_mitigation', 'review_note')
    GROUP BY tenant_id, event_day, event_id
) AS o ON o.tenant_id = i.tenant_id AND o.event_day = i.event_day AND o.event_id = i.event_id
LEFT JOIN
(
    SELECT tenant_id, event_day, event_id, content_digest, review_id, toString(decision) AS decision, CAST(tags AS Array(String)) AS tags
    FROM {{db}}.current_reviews
) AS r ON r.tenant_id = i.tenant_id AND r.event_day = i.event_day AND r.event_id = i.event_id AND r.content_digest = i.content_digest
SETTINGS do_not_merge_across_partitions_select_final = 1;

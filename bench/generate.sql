-- Rows as the hot path would have written them, made inside the engine from their numbers alone:
-- {{.From}} up to {{.To}} of {{.Rows}}, spread over {{.Days}} days that end at {{.End}} (milliseconds).
-- Half of them are tenant-0's; one in twenty is biased; verdicts, flat rows and markers agree.

{{define "events"}}
WITH
    cityHash64(number) AS h,
    sipHash64(number) AS h2,
    toUInt64({{.End}} - {{.Days}} * 86400000 + intDiv(number * {{.Days}} * 86400000, {{.Rows}})) AS ms,
    ms + 800 AS broker_ms,
    bitAnd(h, 1048575) AS place,
    h % 20 = 0 AS biased,
    h2 % 100 = 7 AS unsafe,
    ['charter.sex', 'charter.age', 'charter.disability', 'charter.ethnic_origin', 'terms.gender'][1 + h2 % 5] AS bias_kind
SELECT
    number,
    if(number % 2 = 0, 'tenant-0', concat('tenant-', toString(1 + h % 3))) AS tenant_id,
    fromUnixTimestamp64Milli(toInt64(ms), 'UTC') AS event_ts,
    fromUnixTimestamp64Milli(toInt64(broker_ms), 'UTC') AS broker_ts,
    toDate(event_ts) AS event_day,
    reinterpretAsUUID(concat(
        reinterpretAsFixedString(bitOr(bitOr(bitShiftLeft(ms, 16), toUInt64(0x7000)), bitAnd(h2, toUInt64(0xfff)))),
        reinterpretAsFixedString(bitOr(toUInt64(0x8000000000000000), bitShiftRight(h, 2))))) AS event_id,
    SHA256(toString(number)) AS content_digest,
    bitNot(bitOr(bitShiftLeft(broker_ms, 20), place)) AS version,
    bitOr(bitShiftLeft(toUInt64(1), 54), bitAnd(bitNot(bitOr(bitShiftLeft(toUInt64(broker_ms - 1577836800000), 14), bitShiftRight(place, 6))), toUInt64(18014398509481983))) AS current_version,
    lower(hex(MD5(concat('trace', toString(number))))) AS trace_id,
    concat('user-', toString(h2 % 5000)) AS user_id,
    concat('app-', toString(h2 % 12)) AS app,
    ['general', 'hr', 'finance', 'healthcare', 'education'][1 + bitShiftRight(h, 20) % 5] AS domain,
    ['openai', 'anthropic', 'mistral'][1 + bitShiftRight(h, 24) % 3] AS provider,
    ['gpt-4o', 'claude-x', 'mistral-large'][1 + bitShiftRight(h, 24) % 3] AS model,
    ['low', 'medium', 'high'][1 + bitShiftRight(h, 28) % 3] AS sensitivity_score,
    'generated' AS topic,
    toInt64(number) AS offset,
    toUInt8(biased) AS bias_detected,
    toUInt8(biased AND h2 % 3 > 0) AS flagged,
    toUInt8(unsafe) AS is_unsafe,
    if(biased, [bias_kind], []) AS bias_types,
    arraySort(arrayConcat(bias_types, if(unsafe, ['safety.harassment'], []))) AS kinds,
    toUInt8(if(length(kinds) > 0, 1 + h2 % 4, 0)) AS max_severity,
    toInt32(if(biased, 500000 + h2 % 500000, 0)) AS confidence,
    toInt64(if(biased, 600000, 0)) AS bias_sum,
    toInt64(if(unsafe, 400000, 0)) AS safety_sum,
    toInt64(h2 % 300000) AS toxicity
FROM numbers({{.From}}, {{.To}} - {{.From}})
{{end}}

{{define "interactions"}}
INSERT INTO interactions
    (tenant_id, event_day, event_id, content_digest, version, event_ts, sort_ts, topic, partition, offset, broker_ts, trace_id, app, domain, provider, model,
    prompt_tokens, response_tokens, latency_ms, cost_micro_usd, sensitivity_score, contained_pii, contained_proprietary, contained_customer_data, status, prompt_chars, response_chars)
SELECT
    tenant_id, event_day, event_id, content_digest, version, event_ts, event_ts, topic, 0, offset, broker_ts, trace_id, app, domain, provider, model,
    100 + number % 200, 300 + number % 500, 800 + number % 3000, 2100, sensitivity_score, -1, -1, -1, 'success', 500, 1500
FROM ({{template "events" .}})
{{end}}

{{define "verdicts"}}
INSERT INTO verdicts
    (tenant_id, event_day, event_id, content_digest, version, analyzer, result_id, rule_set, status, bias_detected, bias_types, bias_sum, safety_sum, threshold,
    flagged, unsafe, action, confidence, max_severity, findings.kind, findings.rule, findings.rule_version, findings.ground, findings.severity, findings.score,
    findings.confidence, findings.side, findings.start, findings.end, findings.abusive, findings.entity, scores.name, scores.value, analysis_ts, duration_us)
SELECT
    tenant_id, event_day, event_id, content_digest, version, 'hot', event_id, 'generated', 'done', bias_detected, bias_types, bias_sum, safety_sum, 300000,
    flagged, is_unsafe, if(flagged = 1, 'log', 'none'), confidence, max_severity, kinds, arrayMap(k -> concat(k, '.rule-', toString(number % 40)), kinds), arrayMap(k -> '1', kinds),
    arrayMap(k -> if(startsWith(k, 'charter.'), substring(k, 9), ''), kinds), arrayMap(k -> max_severity, kinds), arrayMap(k -> toInt64(500000), kinds),
    arrayMap(k -> confidence, kinds), arrayMap(k -> 'output', kinds), arrayMap(k -> toUInt32(5), kinds), arrayMap(k -> toUInt32(17), kinds), arrayMap(k -> 0, kinds), arrayMap(k -> '', kinds),
    ['bias', 'toxicity'], [bias_sum, toxicity], broker_ts, 120
FROM ({{template "events" .}})
{{end}}

{{define "audit_current"}}
INSERT INTO audit_current
    (tenant_id, event_day, sort_ts, event_id, content_digest, version, event_ts, broker_ts, trace_id, app, domain, provider, model, sensitivity_score, status,
    cost_micro_usd, analysis_status, rule_set, bias_detected, flagged, unsafe, bias_types, kinds, severities, max_severity, n_findings, confidence, bias_sum, safety_sum, toxicity, threshold, action, topic, partition, offset)
SELECT
    tenant_id, event_day, event_ts, event_id, content_digest, current_version, event_ts, broker_ts, trace_id, app, domain, provider, model, sensitivity_score, 'success',
    2100, 'done', 'generated', bias_detected, flagged, is_unsafe, bias_types, kinds, arrayMap(k -> max_severity, kinds), max_severity, length(kinds), confidence, bias_sum, safety_sum, toxicity, 300000, if(flagged = 1, 'log', 'none'), topic, 0, offset
FROM ({{template "events" .}})
{{end}}

{{define "interaction_users"}}
INSERT INTO interaction_users (tenant_id, user_id, event_day, event_id, sort_ts, version)
SELECT tenant_id, user_id, event_day, event_id, event_ts, version
FROM ({{template "events" .}})
{{end}}

{{define "interaction_texts"}}
INSERT INTO interaction_texts (tenant_id, event_day, event_id, kind, source_id, version, text)
SELECT tenant_id, event_day, event_id, kind, content_digest, version, concat(hex(SHA256(concat(kind, toString(number)))), repeat(' a word of a text', if(kind = 'prompt', 25, 75)))
FROM ({{template "events" .}})
ARRAY JOIN ['prompt', 'response'] AS kind
WHERE number % 20 = 1
{{end}}

{{define "ingest_batches"}}
INSERT INTO ingest_batches (topic, epoch, partition, lo, hi, generation, rows)
SELECT 'generated', 0, 0, {{.From}}, {{.To}} - 1, 1, {{.To}} - {{.From}}
{{end}}

-- {{.N}} rows of audit_current alone, {{.First}} the first number, spread over {{.Span}} milliseconds from {{.From}},
-- written {{.Age}} seconds ago:
-- 5 tenants, 12 applications, 5 domains, 8 models, 24 kinds, one in ten with a finding, one in twenty late or undated.
{{define "rollup_rows"}}
INSERT INTO audit_current
    (tenant_id, event_day, sort_ts, event_id, content_digest, version, event_ts, broker_ts, time_assumed, app, domain, provider, model, status, cost_micro_usd,
    analysis_status, rule_set, bias_detected, flagged, unsafe, gated, bias_types, kinds, severities, max_severity, mitigation, written_at)
WITH
    cityHash64(number) AS h,
    sipHash64(number) AS h2,
    fromUnixTimestamp64Milli(toInt64({{.From}} + intDiv((number - {{.First}}) * {{.Span}}, {{.N}})), 'UTC') AS ts,
    h % 20 = 1 AS undated,
    h2 % 10 = 0 AS found,
    concat('charter.kind_', toString(h2 % 16)) AS ground
SELECT
    concat('tenant-', toString(h % 5)), toDate(ts), if(undated, toDateTime64(toDate(ts), 3, 'UTC'), ts), toUUID(reinterpretAsUUID(concat(reinterpretAsFixedString(h), reinterpretAsFixedString(h2)))),
    reinterpretAsFixedString(sipHash128(number)) || reinterpretAsFixedString(sipHash128(h)), bitOr(bitShiftLeft(toUInt64(1), 54), number), ts, multiIf(undated, ts, h % 20 = 2, ts + INTERVAL 3 DAY, ts + INTERVAL 1 SECOND),
    undated, concat('app-', toString(bitShiftRight(h, 8) % 12)), ['general', 'hr', 'finance', 'healthcare', 'education'][1 + bitShiftRight(h, 20) % 5], 'p',
    concat('model-', toString(bitShiftRight(h, 24) % 8)), 'success', 2100, if(h % 500 = 3, 'failed', 'done'), 'r1', found, found AND h2 % 3 > 0, h2 % 100 = 7, h2 % 300 = 9,
    if(found, arraySort([ground, 'terms.gender']), []), if(found, arraySort([ground, 'terms.gender', concat('safety.', toString(h % 5))]), []), if(found, [1 + h % 4, h % 4, 0], []),
    if(found, 1 + h2 % 4, 0), if(found, ['HUMAN_REVIEW', 'REPHRASE_RESPONSE', 'BLOCK_RESPONSE'][1 + h % 3], ''), now64(3) - INTERVAL {{.Age}} SECOND
FROM numbers({{.First}}, {{.N}})
{{end}}

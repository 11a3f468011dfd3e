INSERT INTO audit_current (tenant_id, event_day, sort_ts, event_id, content_digest, version, event_ts, broker_ts, trace_id, app, domain, provider, model,
    status, analysis_status, bias_detected, flagged, bias_types, kinds, max_severity, n_findings, confidence, bias_sum, threshold, action, topic, offset)
SELECT
    ['acme', 'beta'][number % 2 + 1], toDate(ts), now64(3) - INTERVAL number * 2 MINUTE AS ts, reinterpretAsUUID(number), toFixedString(toString(number), 32), 1, ts, ts,
    leftPad(toString(number), 32, '0'), 'app', ['general', 'hr', 'finance', 'healthcare', 'education'][number % 5 + 1], 'openai', 'm',
    'success', if(number % 20 = 7, 'failed', 'done') AS analysis,
    number % 4 = 0 AND analysis = 'done', number % 8 = 0 AND analysis = 'done',
    if(number % 4 = 0, if(number % 8 = 0, ['charter.age', 'charter.sex'], ['charter.sex']), []) AS types, types, if(number % 4 = 0, 3, 0), length(types), 800000, 600000, 300000, 'none', 'llm.interactions', number
FROM numbers(300);

INSERT INTO verdicts (tenant_id, event_day, event_id, analyzer, result_id, content_digest, version, status, analysis_ts,
    `findings.kind`, `findings.rule`, `findings.rule_version`, `findings.ground`, `findings.severity`, `findings.score`, `findings.confidence`, `findings.side`,
    `findings.start`, `findings.end`, `findings.abusive`, `findings.entity`)
SELECT tenant_id, event_day, event_id, 'hot', event_id, content_digest, 1, analysis_status, event_ts,
    bias_types, arrayMap(t -> t || '.rule', bias_types), arrayMap(t -> '1', bias_types), arrayMap(t -> substring(t, 9), bias_types), arrayMap(t -> 3, bias_types),
    arrayMap(t -> 600000, bias_types), arrayMap(t -> 800000, bias_types), arrayMap(t -> 'output', bias_types), arrayMap(t -> 0, bias_types), arrayMap(t -> 5, bias_types),
    arrayMap(t -> 0, bias_types), arrayMap(t -> '', bias_types)
FROM audit_current

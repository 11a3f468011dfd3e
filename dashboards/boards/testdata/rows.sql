INSERT INTO audit_current (tenant_id, event_day, sort_ts, event_id, content_digest, version, event_ts, broker_ts, trace_id, app, domain, provider, model,
    status, analysis_status, bias_detected, flagged, bias_types, kinds, max_severity, n_findings, confidence, bias_sum, threshold, action, topic, offset)
SELECT
    ['acme', 'beta'][number % 2 + 1], toDate(ts), now64(3) - INTERVAL number * 2 MINUTE AS ts, reinterpretAsUUID(number), toFixedString(toString(number), 32), 1, ts, ts,
    leftPad(toString(number), 32, '0'), ['hr-bot', 'tutor'][number % 2 + 1], ['hr', 'education'][number % 2 + 1], 'openai', ['gpt-4o', 'mistral'][number % 2 + 1],
    'success', if(number % 20 = 7, 'failed', 'done') AS analysis,
    number % 3 = 0 AND analysis = 'done', number % 3 = 0 AND analysis = 'done',
    if(number % 3 = 0, if(number % 9 = 0, ['charter.age', 'charter.sex'], ['charter.sex']), []) AS types, types, if(number % 3 = 0, 3, 0), length(types), 800000, 600000, 300000, 'none', 'llm.interactions', number
FROM numbers(300);

INSERT INTO verdicts (tenant_id, event_day, event_id, analyzer, result_id, content_digest, version, status, bias_detected, analysis_ts,
    `findings.kind`, `findings.rule`, `findings.rule_version`, `findings.ground`, `findings.severity`, `findings.score`, `findings.confidence`, `findings.side`,
    `findings.start`, `findings.end`, `findings.abusive`, `findings.entity`)
SELECT tenant_id, event_day, event_id, 'hot', event_id, content_digest, 1, analysis_status, bias_detected, event_ts,
    bias_types, arrayMap(t -> t || '.rule', bias_types), arrayMap(t -> '1', bias_types), arrayMap(t -> substring(t, 9), bias_types), arrayMap(t -> 3, bias_types),
    arrayMap(t -> 600000, bias_types), arrayMap(t -> 800000, bias_types), arrayMap(t -> 'output', bias_types), arrayMap(t -> 0, bias_types), arrayMap(t -> 5, bias_types),
    arrayMap(t -> 0, bias_types), arrayMap(t -> '', bias_types)
FROM audit_current;

INSERT INTO verdicts (tenant_id, event_day, event_id, analyzer, analyzer_version, result_id, content_digest, version, rule_set, status, reason, bias_detected, flagged, mitigation, confidence,
    `findings.kind`, `findings.rule`, `findings.rule_version`, `findings.ground`, `findings.severity`, `findings.score`, `findings.confidence`, `findings.side`,
    `findings.start`, `findings.end`, `findings.abusive`, `findings.entity`, analysis_ts, duration_us, calls, tokens_in, tokens_out, cost_micro_usd)
SELECT tenant_id, event_day, event_id, 'judge', 'attempt-2', reinterpretAsUUID(1000 + offset), content_digest, 1, '1/gpt-4o-mini',
    transform(i, [3, 5, 7], ['failed', 'skipped', 'abandoned'], 'done'), transform(i, [3, 5, 7], ['timeout', 'budget', 'unreadable'], ''),
    i = 0, i = 0, transform(i, [0, 1], ['REPHRASE_RESPONSE', 'HUMAN_REVIEW'], ''), 900000,
    multiIf(i = 0, ['judge.stereotype', 'judge.stereotype', 'dei.person_first'], i = 1, ['judge.injection_attempt'], i = 2, ['offensive.profanity'], []) AS kinds,
    kinds, arrayMap(k -> '1', kinds), arrayMap(k -> '', kinds), arrayMap(k -> 2, kinds), arrayMap(k -> 600000, kinds), arrayMap(k -> 900000, kinds), arrayMap(k -> 'output', kinds),
    arrayMap(k -> 0, kinds), arrayMap(k -> 5, kinds), arrayMap(k -> 0, kinds), arrayMap(k -> '', kinds), now64(3) - INTERVAL offset MINUTE, 2000000, i NOT IN (3, 5, 7), 1000, 200, 500
FROM (SELECT *, intDiv(offset, 2) % 10 AS i FROM audit_current WHERE offset < 240);

INSERT INTO verdicts (tenant_id, event_day, event_id, analyzer, analyzer_version, result_id, content_digest, version, rule_set, status, reason, analysis_ts, duration_us, calls, tokens_in, tokens_out, cost_micro_usd)
SELECT tenant_id, event_day, event_id, 'judge', 'attempt-1', reinterpretAsUUID(2000 + offset), content_digest, 1, '1/gpt-4o-mini', 'failed', 'timeout', now64(3) - INTERVAL offset + 1 MINUTE, 0, 0, 0, 0, 0
FROM audit_current WHERE offset < 240 AND intDiv(offset, 2) % 10 = 0;

INSERT INTO verdicts (tenant_id, event_day, event_id, analyzer, result_id, content_digest, version, status, reason, analysis_ts)
SELECT tenant_id, event_day, event_id, 'hot', event_id, content_digest, 2, 'done', 'language', event_ts
FROM audit_current WHERE offset % 50 = 14;

INSERT INTO ingest_batches (topic, epoch, partition, lo, hi, generation, rows, rejected, skipped, reason, first_offset, first_ts, first_hash, last_offset, last_ts, last_hash, log_end, written_at)
SELECT 'llm.interactions', 0, number % 2, intDiv(number, 2) * 100, intDiv(number, 2) * 100 + 99, 1, 98, 1, 1, '', 0, at - INTERVAL 2 SECOND, 1, 0, at - INTERVAL 1 SECOND, 1, intDiv(number, 2) * 100 + 100 + 7 * (number % 2), now64(3) - INTERVAL number * 10 MINUTE AS at
FROM numbers(200);

INSERT INTO ingest_batches (topic, epoch, partition, lo, hi, generation, rows, rejected, skipped, reason, written_at)
VALUES ('llm.interactions', 0, 1, 20000, 20006, 1, 0, 0, 7, 'gap', now64(3) - INTERVAL 1 HOUR);

INSERT INTO rejected (topic, epoch, partition, offset, version, broker_ts, tenant_id, event_day, event_id, reason, detail, value_bytes, written_at)
SELECT 'llm.interactions', 0, 0, number, 1, at, ['acme', 'beta', ''][number % 3 + 1], toDate(at), generateUUIDv4(), ['bad_json', 'tenant_missing'][number % 2 + 1], 'd', 10, now64(3) - INTERVAL number * 5 MINUTE AS at
FROM numbers(120);

INSERT INTO job_runs (job, started_at, run_id, version, slot, finished_at, trigger, status, detail, host, result)
SELECT ['rollup', 'verdict_retry'][number % 2 + 1] AS job, at, generateUUIDv4(), 1, at, at + INTERVAL 3 SECOND, 'schedule',
    if(job = 'verdict_retry' AND number < 10, 'failed', 'done'), '', 'h', '{}'
FROM (SELECT number, now64(3) - INTERVAL number * 10 MINUTE AS at FROM numbers(200));

INSERT INTO rule_sets (rule_set, kind, version, rule_version, first_seen) VALUES
    ('rs0', 'charter.age', 1, '1', now64(3) - INTERVAL 60 DAY), ('rs0', 'charter.sex', 1, '1', now64(3) - INTERVAL 60 DAY),
    ('rs1', 'charter.age', 1, '2', now64(3) - INTERVAL 3 HOUR), ('rs1', 'charter.sex', 1, '1', now64(3) - INTERVAL 3 HOUR);

INSERT INTO breaches (tenant_id, breach_id, seq, version, state, reason, policy, tier, domain, kind, rule_group, generation, opened_at, changed_at, window_from, window_to,
    n, k, rate, lower, upper, baseline, baseline_n, p_value, severity, rule_set, `top_rules.rule`, `top_rules.interactions`, event_ids, mitigation)
SELECT tenant, toUUID(id), seq, 1, state, 'breached', 'default', tier, domain, kind, 'all', 1, now64(3) - INTERVAL opened MINUTE, now64(3) - INTERVAL changed MINUTE,
    now() - INTERVAL opened + 60 MINUTE, now() - INTERVAL opened MINUTE, 200, 30, 0.15, 0.1, 0.2, 0.02, 9000, 1e-9, 3, 'rs1',
    ['age.older'], [30], [reinterpretAsUUID(3)], 'REPHRASE_RESPONSE'
FROM values('tenant String, id String, seq UInt32, state String, tier String, domain String, kind String, opened UInt32, changed UInt32',
    ('acme', '11111111-1111-4111-8111-111111111111', 1, 'open', 'ticket', 'hr', 'charter.age', 600, 590),
    ('acme', '22222222-2222-4222-8222-222222222222', 1, 'open', 'policy', 'finance', 'charter.race', 500, 490),
    ('acme', '22222222-2222-4222-8222-222222222222', 2, 'mitigated', 'policy', 'finance', 'charter.race', 500, 200),
    ('beta', '33333333-3333-4333-8333-333333333333', 1, 'open', 'blind', 'education', '', 300, 290));

INSERT INTO tickets (tenant_id, breach_id, ticket_id, version, seq, target, action, payload, state, attempts, next_attempt_at, remote_id, remote_key, url, error_class, error_detail, created_at, sent_at)
SELECT tenant, toUUID(breach), generateUUIDv4(), 1, 1, 'linear', 'create', '{}', state, 1, now64(3), 'r', key, if(key = '', '', 'https://linear.app/acme/issue/' || key), error, '',
    now64(3) - INTERVAL created MINUTE, if(sent = 0, toDateTime64(0, 3, 'UTC'), now64(3) - INTERVAL sent MINUTE)
FROM values('tenant String, breach String, state String, key String, error String, created UInt32, sent UInt32',
    ('acme', '11111111-1111-4111-8111-111111111111', 'sent', 'EVE-1', '', 589, 580),
    ('acme', '22222222-2222-4222-8222-222222222222', 'sent', 'EVE-2', '', 489, 480),
    ('beta', '33333333-3333-4333-8333-333333333333', 'pending', '', 'rate_limited', 299, 0))

-- Rows of rollup_hourly of the hours {{.From}} up to {{.To}} of {{.Hours}}, which end at {{.End}} (seconds): {{.PerHour}} an hour, which are
-- cells of ten tenants, seven applications and three models with 27 rows each.
{{define "hourly"}}
INSERT INTO rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k, late, cost_micro_usd)
WITH
    intDiv(number, {{.PerHour}}) AS at,
    number % {{.PerHour}} AS within,
    intDiv(within, 27) AS cell,
    within % 27 AS r,
    cityHash64(number, {{.Version}}) AS h,
    intDiv(cell, 10) % 21 AS x
SELECT
    concat('tenant-', toString(cell % 10)),
    multiIf(r = 0, 'all', r < 4, 'status', r < 8, 'outcome', r < 18, 'kind', r < 24, 'bias', 'mitigation') AS dim,
    toDateTime({{.End}} - 3600 * ({{.Hours}} - at), 'UTC'),
    concat('app-', toString(x % 7), if(cell >= 210, concat('-', toString(intDiv(cell, 210))), '')),
    ['general', 'hr', 'finance', 'healthcare', 'education'][1 + x % 7 % 5],
    ['gpt-4o', 'claude-sonnet', 'mistral-large'][1 + intDiv(x, 7)],
    concat('rules-', toString(intDiv(at, 2160))),
    ['', 'done', 'failed', 'skipped', 'detected', 'flagged', 'unsafe', 'gated',
     'charter.sex', 'charter.age', 'charter.race', 'charter.disability', 'charter.religion', 'terms.gender', 'safety.violence', 'safety.pii_leakage', 'gate.financial', 'dei.representation',
     'charter.sex', 'charter.age', 'charter.race', 'charter.disability', 'charter.religion', 'terms.gender',
     'REPHRASE_RESPONSE', 'HUMAN_REVIEW', 'REDACT_PII'][1 + r],
    if(dim IN ('kind', 'bias'), 1 + r % 3 + (h % 5 = 0), 0), -- a kind's severity, now and then the next
    {{.Version}},
    if(r = 0, 50 + h % 200, 0) AS n,
    multiIf(r = 0, n + h % 3, r = 1, 50 + h % 200, h % 6),
    if(r = 0 AND h % 50 = 0, 1, 0),
    if(r = 0, n * 1200, 0)
FROM numbers({{.From}} * {{.PerHour}}, ({{.To}} - {{.From}}) * {{.PerHour}})
SETTINGS max_threads = 1, max_insert_threads = 1, min_insert_block_size_rows = 2000000, min_insert_block_size_bytes = 1000000000, max_partitions_per_insert_block = 0
{{end}}

{{define "daily"}}
INSERT INTO rollup_daily (tenant_id, dim, day, app, domain, model, rule_set, value, severity, version, n, k, late, cost_micro_usd)
SELECT tenant_id, dim, toDate(hour), app, domain, model, rule_set, value, severity, max(version), sum(n), sum(k), sum(late), sum(cost_micro_usd)
FROM rollup_hourly FINAL
WHERE hour >= toDateTime({{.End}} - 3600 * ({{.Hours}} - {{.From}}), 'UTC') AND hour < toDateTime({{.End}} - 3600 * ({{.Hours}} - {{.To}}), 'UTC')
GROUP BY tenant_id, dim, toDate(hour), app, domain, model, rule_set, value, severity
SETTINGS max_threads = 1, do_not_merge_across_partitions_select_final = 1, max_partitions_per_insert_block = 0
{{end}}

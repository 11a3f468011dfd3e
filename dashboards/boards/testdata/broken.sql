INSERT INTO rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k)
SELECT 'acme', 'bias', toStartOfHour(now() - INTERVAL number HOUR), 'hr-bot', 'hr', 'gpt-4o', 'rs2', 'charter.age', 2, 1, 0, 60 FROM numbers(20);

INSERT INTO rollup_hourly (tenant_id, dim, hour, app, domain, model, rule_set, value, severity, version, n, k)
VALUES ('beta', 'all', toStartOfHour(now()), 'advisor', 'finance', 'm', 'rs2', '', 0, 1, 170, 200);

INSERT INTO ingest_batches (topic, epoch, partition, lo, hi, generation, rows, first_ts, last_ts)
VALUES ('llm.interactions', 0, 3, 0, 9, 1, 10, now64(3) - INTERVAL 20 MINUTE, now64(3) - INTERVAL 20 MINUTE);

INSERT INTO rejected (topic, epoch, partition, offset, version, broker_ts, tenant_id, event_day, event_id, reason, detail, value_bytes)
SELECT 'llm.interactions', 0, 3, number, 1, now64(3), 'gamma', today(), generateUUIDv4(), 'bad_json', 'd', 10 FROM numbers(30)

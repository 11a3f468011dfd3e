SELECT
    b.opened_at AS opened, b.tenant_id AS tenant, b.domain, multiIf(b.tier = 'blind', 'not analysed', b.kind = '', 'any bias', b.kind) AS kind, b.rule_group AS rules,
    b.state, b.reason, b.tier, b.severity,
    b.k, if(b.tier = 'policy', NULL, b.n) AS n, if(b.tier = 'policy', NULL, b.rate) AS rate, if(b.tier = 'policy', NULL, b.baseline) AS baseline,
    b.changed_at AS changed,
    arrayStringConcat(arraySlice(b.top_rules.rule, 1, 3), ', ') AS top_rules, b.mitigation,
    if(empty(b.event_ids), '', toString(b.event_ids[1])) AS example,
    t.remote_key AS ticket, t.url AS ticket_url,
    toString(1000 * toInt64(toUnixTimestamp(b.window_from))) AS from_ms, toString(1000 * toInt64(toUnixTimestamp(b.window_to))) AS to_ms,
    toString(b.breach_id) AS breach, if(b.kind = '' OR startsWith(b.kind, 'charter.'), 'evenhand-bias-rates', 'evenhand-safety') AS board
FROM
(
    SELECT *
    FROM current_breaches
    WHERE state = 'open'
      AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
    ORDER BY severity DESC, opened_at
    LIMIT 200
) AS b
LEFT JOIN
(
    SELECT tenant_id, breach_id, argMax(tickets.remote_key, (remote_key != '', seq)) AS remote_key, argMax(tickets.url, (url != '', seq)) AS url
    FROM tickets FINAL
    GROUP BY tenant_id, breach_id
) AS t ON t.tenant_id = b.tenant_id AND t.breach_id = b.breach_id
ORDER BY severity DESC, opened, breach

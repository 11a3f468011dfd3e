SELECT quantileExact(0.5)((toUnixTimestamp64Milli(sent) - toUnixTimestamp64Milli(opened)) / 1000) AS seconds
FROM
(
    SELECT tenant_id, breach_id, min(changed_at) AS opened
    FROM breaches FINAL
    WHERE state = 'open'
      AND $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
      AND $__conditionalAll(domain IN (${domain:singlequote}), $domain)
    GROUP BY tenant_id, breach_id
) AS b
INNER JOIN
(
    SELECT tenant_id, breach_id, min(sent_at) AS sent
    FROM tickets FINAL
    WHERE toUnixTimestamp64Milli(sent_at) > 0
    GROUP BY tenant_id, breach_id
) AS t ON t.tenant_id = b.tenant_id AND t.breach_id = b.breach_id
WHERE $__timeFilter(opened) AND sent >= opened
HAVING count() > 0

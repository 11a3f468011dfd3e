SELECT domain, characteristic, k / n AS rate
FROM
(
    SELECT
        domain,
        arrayJoin(arrayConcat([''], arrayFilter(t -> startsWith(t, 'charter.'), bias_types))) AS kind,
        substring(kind, 9) AS characteristic,
        count() AS k,
        sumIf(k, kind = '') OVER (PARTITION BY domain) AS n
    FROM audit_current FINAL
    WHERE {{scope}}
      AND analysis_status IN ('done', 'partial')
    GROUP BY domain, kind
)
WHERE kind != ''
ORDER BY domain, characteristic
{{settings}}

SELECT time, characteristic, k / n AS rate
FROM
(
    SELECT
        $__timeInterval(sort_ts) AS time,
        arrayJoin(arrayConcat([''], arrayFilter(t -> startsWith(t, 'charter.'), bias_types))) AS kind,
        substring(kind, 9) AS characteristic,
        count() AS k,
        sumIf(k, kind = '') OVER (PARTITION BY time) AS n
    FROM audit_current FINAL
    WHERE {{scope}}
      AND analysis_status IN ('done', 'partial')
    GROUP BY time, kind
)
WHERE kind != ''
ORDER BY time, characteristic
{{settings}}

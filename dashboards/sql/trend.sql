SELECT time, {{wilson}}
FROM
(
    SELECT $__timeInterval(sort_ts) AS time, countIf(bias_detected = 1) AS k, count() AS n
    FROM audit_current FINAL
    WHERE {{scope}}
      AND analysis_status IN ('done', 'partial')
    GROUP BY time
)
ORDER BY time
{{settings}}

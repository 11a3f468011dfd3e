SELECT {{wilson}}
FROM
(
    SELECT countIf(bias_detected = 1) AS k, count() AS n
    FROM audit_current FINAL
    WHERE {{scope}}
      AND analysis_status IN ('done', 'partial')
)
{{settings}}

SELECT {{wilson}}
FROM
(
    SELECT countIf(flagged = 1) AS k, count() AS n
    FROM audit_current FINAL
    WHERE {{scope}}
      AND analysis_status IN ('done', 'partial')
)
{{settings}}

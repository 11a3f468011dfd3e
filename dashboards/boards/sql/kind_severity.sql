SELECT
    {{bucket}} AS time,
    transform(severity, [1, 2, 3, 4], ['LOW', 'MEDIUM', 'HIGH', 'CRITICAL'], 'none') AS severity_name,
    sum(counted) AS interactions
FROM {{rolledWhere "k > 0 AND NOT startsWith(value, 'charter.')" "kind"}}
GROUP BY time, severity_name
ORDER BY time, severity_name

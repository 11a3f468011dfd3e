SELECT first AS time, 'Rules changed' AS title, if(length(changed) > 8, concat(toString(length(changed)), ' kinds'), arrayStringConcat(changed, ', ')) AS text, 'rules' AS tags
FROM
(
    SELECT first, arraySort(groupArray(concat(kind, ' ', rule_version))) AS changed
    FROM (SELECT kind, rule_version, min(first_seen) AS first FROM rule_sets GROUP BY kind, rule_version)
    GROUP BY first
)
WHERE first >= $__fromTime AND first < $__toTime
ORDER BY time
LIMIT 100

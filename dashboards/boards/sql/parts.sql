SELECT table, count() AS parts, uniqExact(partition) AS partitions, max(level) AS most_merged, sum(rows) AS total_rows, sum(bytes_on_disk) AS bytes
FROM system.parts
WHERE active AND database = currentDatabase()
GROUP BY table
ORDER BY bytes DESC

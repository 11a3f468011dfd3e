SELECT min(hour) AS time, 'New model' AS title, model AS text, 'model' AS tags
FROM rollup_hourly FINAL
WHERE {{scope}}
          AND dim = 'all'
          AND hour >= toStartOfDay(toDateTime($__fromTime, 'UTC')) AND hour < $__toTime
          AND k > 0
          AND (model, toDate(hour)) IN
          (
              SELECT model, min(day) AS first
              FROM rollup_daily FINAL
              WHERE {{scope}}
          AND dim = 'all'
          AND k > 0
              GROUP BY model
              HAVING first >= toDate($__fromTime, 'UTC') AND first <= toDate($__toTime - 1, 'UTC')
          )
GROUP BY model
HAVING time >= $__fromTime
ORDER BY time
LIMIT 100

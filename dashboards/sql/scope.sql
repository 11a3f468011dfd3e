tenant_id IN (${tenant:singlequote})
  AND domain IN (${domain:singlequote})
  AND event_day >= toDate($__fromTime) AND event_day <= toDate($__toTime)
  AND $__timeFilter(sort_ts)

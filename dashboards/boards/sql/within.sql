event_ts >= $__fromTime AND event_ts < $__toTime
          AND (sort_ts >= $__fromTime OR sort_ts = toDateTime(toDate($__fromTime, 'UTC'), 'UTC')) AND sort_ts < $__toTime

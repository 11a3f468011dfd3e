(
        SELECT j.at AS at, multiIf(j.bias_detected AND r.detected, 'both', j.bias_detected, 'judge alone', r.detected, 'rules alone', 'neither') AS beside
        FROM {{judged}} AS j
        INNER JOIN
        (
            SELECT tenant_id, event_day, event_id, content_digest, argMax(bias_detected, (analysis_ts, result_id)) = 1 AS detected
            FROM verdicts FINAL
            WHERE (tenant_id, event_day, event_id) IN (SELECT tenant_id, event_day, event_id FROM {{judged}})
              AND event_day >= greatest(toDate($__fromTime, 'UTC') - 7, toDate($__toTime, 'UTC') - 30) AND event_day <= toDate($__toTime, 'UTC')
              AND analyzer = 'hot'
            GROUP BY tenant_id, event_day, event_id, content_digest
        ) AS r USING (tenant_id, event_day, event_id, content_digest)
        WHERE j.status = 'done'
    )

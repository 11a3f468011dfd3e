(
        SELECT tenant_id, event_day, event_id, content_digest, toDateTime(analysis_ts, 'UTC') AS at, analysis_ts, result_id, rule_set, status, reason, bias_detected, flagged, mitigation, confidence,
            arrayDistinct(CAST(findings.kind AS Array(String))) AS kinds, calls, tokens_in, tokens_out, cost_micro_usd, duration_us
        FROM verdicts FINAL
        WHERE $__conditionalAll(tenant_id IN (${tenant:singlequote}), $tenant)
          AND event_day >= greatest(toDate($__fromTime, 'UTC') - 7, toDate($__toTime, 'UTC') - 30) AND event_day <= toDate($__toTime, 'UTC')
          AND analyzer = 'judge'
          AND analysis_ts >= $__fromTime AND analysis_ts < $__toTime{{if .}}
        ORDER BY analysis_ts DESC, result_id DESC
        LIMIT 1 BY tenant_id, event_day, event_id, content_digest{{end}}
    )

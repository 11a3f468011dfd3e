SELECT DISTINCT toString(domain) AS domain FROM audit_current WHERE event_day >= today() - 90 ORDER BY domain

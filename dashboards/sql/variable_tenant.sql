SELECT DISTINCT tenant_id FROM audit_current WHERE event_day >= today() - 90 ORDER BY tenant_id

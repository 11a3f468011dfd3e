-- +goose NO TRANSACTION
-- +goose Up

-- The time by which lists are ordered: with it the events of a user are found in audit_current by its key.
ALTER TABLE {{db}}.interaction_users {{cluster}} ADD COLUMN IF NOT EXISTS sort_ts DateTime64(3, 'UTC') AFTER event_id;

-- Rows from before take it over; of two rows with equal keys and versions the later one stays.
INSERT INTO {{db}}.interaction_users (tenant_id, user_id, retention_class, event_day, event_id, sort_ts, version)
SELECT u.tenant_id, u.user_id, u.retention_class, u.event_day, u.event_id, i.sort_ts, u.version
FROM {{db}}.interaction_users AS u
INNER JOIN (SELECT tenant_id, event_day, event_id, argMax(sort_ts, version) AS sort_ts FROM {{db}}.interactions GROUP BY tenant_id, event_day, event_id) AS i
    ON i.tenant_id = u.tenant_id AND i.event_day = u.event_day AND i.event_id = u.event_id
WHERE toUnixTimestamp64Milli(u.sort_ts) = 0
SETTINGS max_partitions_per_insert_block = 0;

-- +goose NO TRANSACTION
-- +goose Up

-- Who decided a transition; '' where no person did. The view knows the columns that it was made with.
ALTER TABLE {{db}}.breaches {{cluster}} ADD COLUMN IF NOT EXISTS decided_by String AFTER mitigation;

CREATE OR REPLACE VIEW {{db}}.current_breaches {{cluster}} AS
SELECT *
FROM {{db}}.breaches FINAL
ORDER BY tenant_id, breach_id, seq DESC
LIMIT 1 BY tenant_id, breach_id;

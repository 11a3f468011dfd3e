-- +goose NO TRANSACTION
-- +goose Up

-- The review that holds, of each event and content: of each reviewer the newest counts, one that was withdrawn is
-- none, and of several reviewers' the newest with a decision holds. Who is unsure, or leaves a note alone, decides
-- nothing: that shows where nobody decided.
CREATE OR REPLACE VIEW {{db}}.current_reviews {{cluster}} AS
SELECT *
FROM
(
    SELECT *
    FROM {{db}}.reviews FINAL
    ORDER BY tenant_id, event_day, event_id, content_digest, reviewer, reviewed_at DESC, review_id DESC
    LIMIT 1 BY tenant_id, event_day, event_id, content_digest, reviewer
)
WHERE decision != 'withdrawn'
ORDER BY tenant_id, event_day, event_id, content_digest, decision = 'unsure', reviewed_at DESC, review_id DESC
LIMIT 1 BY tenant_id, event_day, event_id, content_digest
SETTINGS do_not_merge_across_partitions_select_final = 1;

-- When the review was that opened a breach, 1970 without one, and who was behind most of its interactions: up to three
-- applications, models and kinds each.
ALTER TABLE {{db}}.breaches {{cluster}} ADD COLUMN IF NOT EXISTS confirmed_at DateTime64(3, 'UTC') AFTER decided_by;
ALTER TABLE {{db}}.breaches {{cluster}} ADD COLUMN IF NOT EXISTS `split.of` Array(LowCardinality(String)) AFTER confirmed_at;
ALTER TABLE {{db}}.breaches {{cluster}} ADD COLUMN IF NOT EXISTS `split.value` Array(String) AFTER `split.of`;
ALTER TABLE {{db}}.breaches {{cluster}} ADD COLUMN IF NOT EXISTS `split.interactions` Array(UInt64) AFTER `split.value`;

-- As in migration 29; made again because a view keeps the columns that it was made with.
CREATE OR REPLACE VIEW {{db}}.current_breaches {{cluster}} AS
SELECT *
FROM {{db}}.breaches FINAL
ORDER BY tenant_id, breach_id, seq DESC
LIMIT 1 BY tenant_id, breach_id;

-- Reviews of what several people looked at and somebody was unsure about are written once more, the same but for
-- written_at: the next repair of the read model looks at them, and shows what holds now.
INSERT INTO {{db}}.reviews (tenant_id, event_day, event_id, content_digest, review_id, version, reviewer, decision, tags, reviewed_at)
SELECT tenant_id, event_day, event_id, content_digest, review_id, version, reviewer, decision, tags, reviewed_at
FROM {{db}}.reviews FINAL
WHERE (tenant_id, event_day, event_id) IN
(
    SELECT tenant_id, event_day, event_id
    FROM {{db}}.reviews
    GROUP BY tenant_id, event_day, event_id
    HAVING uniqExact(reviewer) > 1 AND countIf(decision = 'unsure') > 0 AND countIf(decision IN ('confirmed', 'dismissed')) > 0
)
SETTINGS do_not_merge_across_partitions_select_final = 1;

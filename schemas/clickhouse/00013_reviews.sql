-- +goose NO TRANSACTION
-- +goose Up

-- What people said about an interaction: confirmed, dismissed or unsure. Of each reviewer the newest
-- counts; the machine's findings are kept. Notes lie in interaction_texts (kind 'review_note',
-- source_id the review's id).
CREATE TABLE IF NOT EXISTS {{db}}.reviews {{cluster}}
(
    tenant_id      String,
    event_day      Date,
    event_id       UUID,
    content_digest FixedString(32),
    review_id      UUID,
    version        UInt64,
    reviewer       String,
    decision       LowCardinality(String),
    tags           Array(LowCardinality(String)),
    reviewed_at    DateTime64(3, 'UTC'),
    written_at     DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(event_day)
ORDER BY (tenant_id, event_day, event_id, review_id)
{{settings}};

-- +goose NO TRANSACTION
-- +goose Up

-- Every personal or free text, a row for each kind. Dropping a partition is the anonymization.
-- source_id is the content digest, or the 16 bytes of a result, review or gate id and 16 zero bytes.
CREATE TABLE IF NOT EXISTS {{db}}.interaction_texts {{cluster}}
(
    tenant_id       String,
    retention_class String DEFAULT 'std',
    event_day       Date,
    event_id        UUID,
    kind            String,
    source_id       FixedString(32),
    version         UInt64,
    text            String CODEC(ZSTD(1))
)
ENGINE = {{replacing "version"}}
PARTITION BY (retention_class, event_day)
ORDER BY (tenant_id, retention_class, event_day, event_id, kind, source_id)
{{settings "index_granularity_bytes = 1048576" (embedded "merge_selector_base = 7")}};

-- Who took part: serves the filter by user and the erasure of one person; dropped with the texts.
CREATE TABLE IF NOT EXISTS {{db}}.interaction_users {{cluster}}
(
    tenant_id       String,
    user_id         String,
    retention_class String DEFAULT 'std',
    event_day       Date,
    event_id        UUID,
    version         UInt64
)
ENGINE = {{replacing "version"}}
PARTITION BY (retention_class, event_day)
ORDER BY (tenant_id, user_id, retention_class, event_day, event_id)
{{settings}};

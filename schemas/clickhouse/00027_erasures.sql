-- +goose NO TRANSACTION
-- +goose Up

-- Persons whose texts were erased: of every interaction of theirs before a time. who is the SHA-256 of tenant, a zero byte
-- and user id, so that what is delivered again or restored from a backup later goes, too.
CREATE TABLE IF NOT EXISTS {{db}}.erasures {{cluster}}
(
    tenant_id  String,
    erasure_id UUID,
    version    UInt64,
    who        FixedString(32),
    reason     String,
    by         String,
    at         DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, erasure_id)
{{settings}};

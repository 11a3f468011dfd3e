-- +goose NO TRANSACTION
-- +goose Up

-- API keys of machines: a row when one is made (version 1) and one when it is revoked (version 2). hash is
-- SHA-256 of the whole key, whose secret is 32 random bytes and stands nowhere. Times of 1970 mean never.
CREATE TABLE IF NOT EXISTS {{db}}.api_keys {{cluster}}
(
    key_id     String,
    version    UInt64,
    tenant_id  String,
    name       String,
    scopes     Array(LowCardinality(String)),
    hash       FixedString(32),
    created_at DateTime64(3, 'UTC'),
    created_by String,
    expires_at DateTime64(3, 'UTC'),
    revoked_at DateTime64(3, 'UTC'),
    revoked_by String
)
ENGINE = {{replacing "version"}}
ORDER BY key_id
{{settings}};

-- +goose NO TRANSACTION
-- +goose Up

-- What an erasure of a person takes, written before it does: of one event day the interactions whose texts go, by the
-- hashes of tenant, id and content that seals name them with (seals.event of ingest_batches), and how many rows of texts
-- those are. signature is Ed25519 of the key signer over the row, as package internal/seal writes it; both are empty where
-- no key is set. What is delivered again, or held no longer, is a row of its own.
CREATE TABLE IF NOT EXISTS {{db}}.texts_erased {{cluster}}
(
    tenant_id    String,
    erasure_id   UUID,
    event_day    Date,
    taken_id     UUID,
    version      UInt64,
    seal_version UInt8,
    at           DateTime64(3, 'UTC'),
    texts        UInt64,
    events       Array(UInt64),
    signer       String,
    signature    String
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, erasure_id, event_day, taken_id)
{{settings}};

-- How many interactions and rows of texts an erasure took when it was asked for; -1 of programs that did not note it.
ALTER TABLE {{db}}.erasures {{cluster}}
    ADD COLUMN IF NOT EXISTS interactions Int64 DEFAULT -1 AFTER done_at,
    ADD COLUMN IF NOT EXISTS texts Int64 DEFAULT -1 AFTER interactions;

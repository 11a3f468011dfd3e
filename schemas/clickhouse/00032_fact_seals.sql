-- +goose NO TRANSACTION
-- +goose Up

-- Proof of what comes after a range of the log: verdicts of retries, of the judge and of outside analyzers, reviews, feedback, reveals, gates, and
-- their texts, as package internal/seal writes it. A writer is one start of a process, or of a part of it; its rows are numbered from 1 without a
-- gap, and before is the SHA-256 of the form of the one before it. A seal is written before its row: a row without one was not written by us. Of each
-- row it holds hashes of tenant, of what names the row, and of the row. The rows of facts that are sealed in rows up to stored are in, but for
-- those that an object 'void' names (row: the number of their seal): their writing failed. An object 'writer' is what the writer found of another
-- one: the hash of its id and, in row, its highest number. signature is Ed25519 of the key signer over the row; both are empty where no key is set.
CREATE TABLE IF NOT EXISTS {{db}}.fact_seals {{cluster}}
(
    writer       UUID,
    n            UInt64,
    version      UInt64,
    seal_version UInt8,
    sealed_at    DateTime64(3, 'UTC'),
    stored       UInt64,
    seals        Nested(object LowCardinality(String), day Date, tenant UInt64, name UInt64, version UInt64, row UInt64),
    before       FixedString(32),
    signer       String,
    signature    String
)
ENGINE = {{replacing "version"}}
ORDER BY (writer, n)
{{settings}};

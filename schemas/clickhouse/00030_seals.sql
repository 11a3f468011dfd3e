-- +goose NO TRANSACTION
-- +goose Up

-- Proof of what a range gave: a seal for each interaction, hashes of what names it, of its row, of its verdict of the
-- hot path and of its texts, as package internal/seal writes them. signature is Ed25519 of the key signer over the marker with
-- its seals; both are empty where no key is set. seal_version is 0 for markers of older programs.
ALTER TABLE {{db}}.ingest_batches {{cluster}}
    ADD COLUMN IF NOT EXISTS seal_version UInt8 AFTER log_end,
    ADD COLUMN IF NOT EXISTS sealed_at DateTime64(3, 'UTC') AFTER seal_version,
    ADD COLUMN IF NOT EXISTS `seals.event` Array(UInt64) AFTER sealed_at,
    ADD COLUMN IF NOT EXISTS `seals.interaction` Array(UInt64) AFTER `seals.event`,
    ADD COLUMN IF NOT EXISTS `seals.verdict` Array(UInt64) AFTER `seals.interaction`,
    ADD COLUMN IF NOT EXISTS `seals.texts` Array(UInt64) AFTER `seals.verdict`,
    ADD COLUMN IF NOT EXISTS signer String AFTER `seals.texts`,
    ADD COLUMN IF NOT EXISTS signature String AFTER signer;

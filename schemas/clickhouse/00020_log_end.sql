-- +goose NO TRANSACTION
-- +goose Up

-- Where the log ended when a range was cut: the offset after its last record, 0 where that is not known.
-- What lay behind the range then, log_end - hi - 1 records, is the lag of that moment.
ALTER TABLE {{db}}.ingest_batches {{cluster}} ADD COLUMN IF NOT EXISTS log_end Int64 AFTER last_hash;

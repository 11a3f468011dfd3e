-- +goose NO TRANSACTION
-- +goose Up

-- When a person's texts were out of the tables and off the disk; 1970 while the erasure is under way.
ALTER TABLE {{db}}.erasures {{cluster}} ADD COLUMN IF NOT EXISTS done_at DateTime64(3, 'UTC') AFTER at;

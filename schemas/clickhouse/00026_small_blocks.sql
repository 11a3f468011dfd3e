-- +goose NO TRANSACTION
-- +goose Up

-- A page's rows lie here and there, and of each column a whole block is unpacked for a granule of 1,024 rows. So
-- blocks are closed once they hold 8 KB instead of 64 KB. Parts from before follow when they are merged.
ALTER TABLE {{db}}.audit_current {{cluster}} MODIFY SETTING min_compress_block_size = 8192;

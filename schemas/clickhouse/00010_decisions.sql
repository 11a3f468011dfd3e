-- +goose NO TRANSACTION
-- +goose Up

-- What was decided on the topic evenhand.decisions: of one key and seq the first valid record by
-- offset. All columns but written_at come from the log alone. log_id is the id that the log's first
-- record gives it: where a log was replaced, the decisions of both stand here, and of one key and seq
-- the one with the greatest decided_at holds. n counts the decisions of a log from 1; check_sum adds
-- up what places them, so that a hole can be told; rules stands for the kinds that were known.
-- Values hold ids and codes, never words of people.
CREATE TABLE IF NOT EXISTS {{db}}.decisions {{cluster}}
(
    kind        LowCardinality(String),
    key         String,
    seq         UInt32,
    log_id      UUID,
    version     UInt64,
    value       String,
    proposer    String,
    proposal_id UUID,
    offset      Int64,
    decided_at  DateTime64(3, 'UTC'),
    n           UInt64,
    check_sum   UInt64,
    rules       UInt64,
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (kind, key, seq, log_id)
{{settings}};

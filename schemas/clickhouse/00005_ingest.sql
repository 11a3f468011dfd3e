-- +goose NO TRANSACTION
-- +goose Up

-- Commit markers: every offset of [lo, hi] is in the store. Where ranges of two generations overlap
-- the highest wins. Edge hashes are 0 and edge times the epoch when the range holds no record.
CREATE TABLE IF NOT EXISTS {{db}}.ingest_batches {{cluster}}
(
    topic        String,
    epoch        Int32,
    partition    Int32,
    lo           Int64,
    hi           Int64,
    generation   Int32,
    version      UInt64 DEFAULT toUInt64(greatest(generation, 0)),
    rows         UInt32,
    rejected     UInt32,
    skipped      UInt32,
    reason       String,
    first_offset Int64,
    first_ts     DateTime64(3, 'UTC'),
    first_hash   UInt64,
    last_offset  Int64,
    last_ts      DateTime64(3, 'UTC'),
    last_hash    UInt64,
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (topic, epoch, partition, lo, hi)
{{settings}};

-- Messages that could not become interactions. Key, value and headers lie in interaction_texts
-- (kind 'rejected', event_day of the broker time, this event_id) and die with them.
CREATE TABLE IF NOT EXISTS {{db}}.rejected {{cluster}}
(
    topic        String,
    epoch        Int32,
    partition    Int32,
    offset       Int64,
    version      UInt64,
    broker_ts    DateTime64(3, 'UTC'),
    tenant_id    String,
    event_day    Date,
    event_id     UUID,
    reason       LowCardinality(String),
    detail       String,
    value_bytes  UInt32,
    written_at   DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (topic, epoch, partition, offset)
{{settings}};

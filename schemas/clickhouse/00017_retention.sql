-- +goose NO TRANSACTION
-- +goose Up

-- In which retention class a tenant's texts are written, from an event day on: append only, and only for
-- days whose first event cannot have come yet, so that an event keeps its class for ever. Of one
-- tenant the row with the greatest from_day not after the event's day holds, of equal ones the newest.
-- Zero days mean: as the settings say.
CREATE TABLE IF NOT EXISTS {{db}}.retention_classes {{cluster}}
(
    tenant_id   String,
    from_day    Date,
    assigned_at DateTime64(3, 'UTC'),
    version     UInt64,
    class       LowCardinality(String),
    text_days   UInt32,
    row_days    UInt32,
    assigned_by String
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, from_day, assigned_at)
{{settings}};

-- Legal holds: a row when one is placed (fact 'placed') and one when it is released. The filter is a list
-- of events, a range of event time [from_ts, to_ts) or a user, whose id lies in texts_held.
CREATE TABLE IF NOT EXISTS {{db}}.legal_holds {{cluster}}
(
    tenant_id String,
    hold_id   UUID,
    fact      LowCardinality(String),
    version   UInt64,
    event_ids Array(UUID),
    from_ts   DateTime64(3, 'UTC'),
    to_ts     DateTime64(3, 'UTC'),
    by_user   UInt8,
    reason    String,
    by        String,
    at        DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, hold_id, fact)
{{settings}};

-- Copies of rows of interaction_texts that a hold keeps beyond their limit, a partition a hold: dropping
-- it is the anonymization. Kind 'hold_user' is the user of a hold by user, event_id then the hold's id.
CREATE TABLE IF NOT EXISTS {{db}}.texts_held {{cluster}}
(
    hold_id         UUID,
    tenant_id       String,
    event_day       Date,
    event_id        UUID,
    kind            String,
    source_id       FixedString(32),
    version         UInt64,
    retention_class String,
    text            String CODEC(ZSTD(1)),
    held_at         DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
PARTITION BY hold_id
ORDER BY (hold_id, tenant_id, event_day, event_id, kind, source_id)
{{settings}};

-- What retention did: a row for each tenant and partition, 'begun' before and 'done' after. period is the
-- day, or the first day of the month. held are the rows of it that holds kept. drop_id is made of what was
-- there, so that two runs at once say the same.
CREATE TABLE IF NOT EXISTS {{db}}.retention_runs {{cluster}}
(
    object    LowCardinality(String),
    class     LowCardinality(String),
    period    Date,
    tenant_id String,
    drop_id   UUID,
    version   UInt64,
    action    LowCardinality(String),
    state     LowCardinality(String),
    rows      UInt64,
    bytes     UInt64,
    held      UInt64,
    at        DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
ORDER BY (object, class, period, tenant_id, drop_id)
{{settings}};

-- How many rows of interactions and of rejected a deleted month had in each partition of the log, and
-- between which offsets: written before the first row goes, so that the markers can still be proved.
CREATE TABLE IF NOT EXISTS {{db}}.retention_purged {{cluster}}
(
    object    LowCardinality(String),
    tenant_id String,
    month     Date,
    topic     String,
    epoch     Int32,
    partition Int32,
    version   UInt64,
    rows      UInt64,
    lo        Int64,
    hi        Int64,
    done      UInt8,
    at        DateTime64(3, 'UTC')
)
ENGINE = {{replacing "version"}}
ORDER BY (object, tenant_id, month, topic, epoch, partition)
{{settings}};

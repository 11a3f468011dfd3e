-- +goose NO TRANSACTION
-- +goose Up

-- The outbox of remediation: what is to be said to a tracker about a transition of a breach, written
-- before it is sent. ticket_id is the id that we give the remote object (version-4 shaped), so that
-- saying it twice changes nothing. Payload is JSON without words of people.
CREATE TABLE IF NOT EXISTS {{db}}.tickets {{cluster}}
(
    tenant_id       String,
    breach_id       UUID,
    ticket_id       UUID,
    version         UInt64,
    seq             UInt32,
    target          LowCardinality(String),
    action          LowCardinality(String),
    payload         String,
    state           LowCardinality(String),
    attempts        UInt32,
    next_attempt_at DateTime64(3, 'UTC'),
    remote_id       String,
    remote_key      String,
    url             String,
    error_class     LowCardinality(String),
    error_detail    String,
    created_at      DateTime64(3, 'UTC'),
    sent_at         DateTime64(3, 'UTC'),
    written_at      DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (tenant_id, breach_id, ticket_id)
{{settings}};

-- What trackers told us, once a delivery.
CREATE TABLE IF NOT EXISTS {{db}}.ticket_events {{cluster}}
(
    target      LowCardinality(String),
    delivery_id String,
    version     UInt64,
    remote_id   String,
    event       LowCardinality(String),
    action      LowCardinality(String),
    state_type  LowCardinality(String),
    sent_at     DateTime64(3, 'UTC'),
    received_at DateTime64(3, 'UTC'),
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
ORDER BY (target, delivery_id)
{{settings}};

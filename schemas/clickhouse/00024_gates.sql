-- +goose NO TRANSACTION
-- +goose Up

-- Questions to people about critical actions, and their answers: a row when a gate is opened (version 1) and
-- one, which wins, made of the decision on evenhand.decisions (kind 'gate'; version decided_at in
-- milliseconds). Matched texts and the user lie in interaction_texts (kind 'gate', source_id the gate's id),
-- the decider's words beside them (kind 'gate_note', source_id the id of the proposal that won), both under
-- event_id, or under the gate's id where the gate has no interaction. event_day is the day of the opening.
CREATE TABLE IF NOT EXISTS {{db}}.gates {{cluster}}
(
    tenant_id   String,
    event_day   Date,
    gate_id     UUID,
    version     UInt64,
    event_id    UUID,
    rules       Nested(id String, description String, pattern String, category String, side String, start UInt32, end UInt32),
    provider    LowCardinality(String),
    method      LowCardinality(String),
    trace_id    String,
    model       LowCardinality(String),
    app         LowCardinality(String),
    requester   String,
    asked_at    DateTime64(3, 'UTC'),
    opened_at   DateTime64(3, 'UTC'),
    expires_at  DateTime64(3, 'UTC'),
    state       LowCardinality(String),
    cause       LowCardinality(String),
    decided_by  String,
    decided_at  DateTime64(3, 'UTC'),
    proposal_id UUID,
    written_at  DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = {{replacing "version"}}
PARTITION BY toYYYYMM(event_day)
ORDER BY (tenant_id, event_day, gate_id)
{{settings}};

-- +goose NO TRANSACTION
-- +goose Up

-- The controlled vocabulary of bias_type, findings' kinds and human tags. bias_key is unique under
-- FINAL; filled from schemas/taxonomy after the migrations.
CREATE TABLE IF NOT EXISTS {{db}}.bias_taxonomy {{cluster}}
(
    id             UInt32,
    bias_key       String,
    description    String,
    severity_level UInt8,
    version        UInt64,
    CONSTRAINT severity_level_range CHECK severity_level BETWEEN 1 AND 5,
    CONSTRAINT bias_key_form CHECK match(bias_key, '^[a-z][a-z0-9_]*([.][a-z0-9_]+)?$')
)
ENGINE = {{replacing "version"}}
ORDER BY bias_key
{{settings}};

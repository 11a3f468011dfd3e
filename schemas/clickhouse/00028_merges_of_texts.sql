-- +goose NO TRANSACTION
-- +goose Up

-- Migration 2 was edited after stores had been made with it. What can be set later is set here for those: seven parts of
-- a kind are merged at once, which only the embedded engine is known to have a setting for. docs/operations.md tells
-- what else old tables lack, which only a new table can have.
ALTER TABLE {{db}}.interaction_texts {{cluster}} {{with embedded "merge_selector_base = 7"}}MODIFY SETTING {{.}}{{else}}MODIFY COMMENT 'every personal or free text'{{end}};

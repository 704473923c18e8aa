-- Imports may leave out values that do not fit, and import the rest of their rows.
ALTER TABLE item_imports ADD COLUMN skipped_value_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE item_import_errors ADD COLUMN is_rejected BOOLEAN NOT NULL DEFAULT TRUE;

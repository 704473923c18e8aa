DELETE FROM item_import_errors WHERE NOT is_rejected;
ALTER TABLE item_import_errors DROP COLUMN is_rejected;
ALTER TABLE item_imports DROP COLUMN skipped_value_count;

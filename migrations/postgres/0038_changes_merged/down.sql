ALTER TABLE collection_indexes DROP COLUMN changes_merged;

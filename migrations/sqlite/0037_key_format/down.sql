ALTER TABLE collection_indexes DROP COLUMN key_format;

ALTER TABLE collection_indexes DROP COLUMN columns_revision;

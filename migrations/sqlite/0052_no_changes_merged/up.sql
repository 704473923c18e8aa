-- Search no longer keeps words in memory, so nothing counts the changes of columnar indexes.
ALTER TABLE collection_indexes DROP COLUMN changes_merged;

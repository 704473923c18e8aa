-- Drawn anew whenever a segment of a columnar index is written, so that columns in memory are known to be those stored.
ALTER TABLE collection_indexes ADD COLUMN columns_revision BIGINT NOT NULL DEFAULT 0;

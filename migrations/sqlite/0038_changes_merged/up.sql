-- How many changes of items were merged into the segments of a columnar index.
ALTER TABLE collection_indexes ADD COLUMN changes_merged BIGINT NOT NULL DEFAULT 0;

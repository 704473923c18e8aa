ALTER TABLE collection_indexes ADD COLUMN changes_merged BIGINT NOT NULL DEFAULT 0;

-- Columnar indexes: for each segment of a collection's items, which ends at `last_id`, one row for each column.
CREATE TABLE item_columns (
    index_id BIGINT NOT NULL,
    last_id BIGINT NOT NULL,
    column_id BIGINT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (index_id, last_id, column_id)
);

-- Items that were changed since their segment was written.
CREATE TABLE item_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    index_id BIGINT NOT NULL,
    item_id BIGINT NOT NULL
);
CREATE INDEX item_changes_by_index ON item_changes (index_id, id);

CREATE TABLE item_imports (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    collection_id BIGINT NOT NULL REFERENCES collections (id),
    status TEXT NOT NULL,
    file_id BIGINT NOT NULL REFERENCES files (id),
    settings TEXT NOT NULL,
    -- What was found in the file: format, encoding, columns and what becomes of each.
    source TEXT,
    bytes_total BIGINT,
    bytes_done BIGINT NOT NULL,
    rows_total BIGINT,
    rows_done BIGINT NOT NULL,
    created_count BIGINT NOT NULL,
    updated_count BIGINT NOT NULL,
    unchanged_count BIGINT NOT NULL,
    skipped_count BIGINT NOT NULL,
    failed_count BIGINT NOT NULL,
    -- Why it ended early, as code and message.
    error TEXT,
    error_file_id BIGINT REFERENCES files (id),
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    started_at TIMESTAMP,
    finished_at TIMESTAMP
);
CREATE INDEX item_imports_by_collection ON item_imports (collection_id, id);

-- Rows that an import could not take, until its error file is written; the first 1,000 stay.
CREATE TABLE item_import_errors (
    import_id TEXT NOT NULL REFERENCES item_imports (id),
    row_number BIGINT NOT NULL,
    record TEXT NOT NULL,
    errors TEXT NOT NULL,
    PRIMARY KEY (import_id, row_number)
) WITHOUT ROWID;

-- The media type that the sender declared; `mime_type` is what the content is.
ALTER TABLE files ADD COLUMN declared_type TEXT;
ALTER TABLE files ADD COLUMN kind TEXT NOT NULL DEFAULT 'other';
ALTER TABLE files ADD COLUMN width BIGINT;
ALTER TABLE files ADD COLUMN height BIGINT;
ALTER TABLE files ADD COLUMN duration_ms BIGINT;
ALTER TABLE files ADD COLUMN folder TEXT;
ALTER TABLE files ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
ALTER TABLE files ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}';
-- The name in lower case, for searches.
ALTER TABLE files ADD COLUMN folded_name TEXT NOT NULL DEFAULT '';

UPDATE files SET folded_name = lower(name), kind = CASE
    WHEN mime_type LIKE 'image/%' THEN 'image'
    WHEN mime_type LIKE 'video/%' THEN 'video'
    WHEN mime_type LIKE 'audio/%' THEN 'audio'
    WHEN mime_type LIKE 'text/%' THEN 'document'
    WHEN mime_type IN ('application/pdf', 'application/json', 'application/x-ndjson', 'application/rtf',
        'application/epub+zip', 'application/msword') THEN 'document'
    WHEN mime_type LIKE 'application/vnd.openxmlformats-officedocument%' THEN 'document'
    WHEN mime_type LIKE 'application/vnd.oasis.opendocument%' THEN 'document'
    WHEN mime_type LIKE 'application/vnd.ms-%' THEN 'document'
    ELSE 'other' END;

CREATE INDEX files_by_content ON files (workspace_id, sha256, size);
CREATE INDEX files_by_object ON files (storage_key);
CREATE INDEX files_pending ON files (created_at) WHERE status = 'pending';
CREATE INDEX files_in_trash ON files (trashed_at) WHERE trashed_at IS NOT NULL AND status = 'ready';

-- Objects that no file has any more, until they are deleted from the storage.
CREATE TABLE unused_objects (
    storage_key TEXT PRIMARY KEY NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE uploads (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    -- Name, folder and so on of the file to be.
    details TEXT NOT NULL,
    -- What the sender announced.
    size BIGINT,
    sha256 TEXT,
    uploaded_by TEXT NOT NULL,
    -- The file, once the upload is complete.
    file_id BIGINT REFERENCES files (id),
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX uploads_by_expiry ON uploads (expires_at);

CREATE TABLE upload_parts (
    upload_id TEXT NOT NULL REFERENCES uploads (id),
    number BIGINT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    storage_key TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (upload_id, number)
);

-- Files that contacts sent, in the order in which they came.
CREATE INDEX message_attachments_received ON message_attachments (workspace_id, id)
    WHERE file_id IS NOT NULL AND provider_media_id IS NOT NULL;

-- The same of messages that were deleted, while the files are kept for longer.
CREATE TABLE files_without_message (
    file_id BIGINT PRIMARY KEY NOT NULL REFERENCES files (id),
    workspace_id BIGINT NOT NULL,
    received_at TIMESTAMP NOT NULL
);
CREATE INDEX files_without_message_by_workspace ON files_without_message (workspace_id, file_id);

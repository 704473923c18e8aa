-- The words of messages, for search. Words are cut as those of items are (`fields::terms`).
CREATE TABLE message_terms (
    message_id BIGINT NOT NULL REFERENCES messages (id),
    term TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    PRIMARY KEY (message_id, term)
) WITHOUT ROWID;
CREATE INDEX message_terms_by_term ON message_terms (workspace_id, term, message_id);

-- Reactions, by what they react to.
CREATE INDEX messages_by_reply ON messages (reply_to_id, id) WHERE reply_to_id IS NOT NULL;

CREATE TABLE quick_replies (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    shortcode TEXT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    buttons TEXT NOT NULL,
    language TEXT,
    scope TEXT NOT NULL,
    key_id TEXT,
    usage_count BIGINT NOT NULL,
    last_used_at TIMESTAMP,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX quick_replies_by_shortcode ON quick_replies (workspace_id, shortcode);
CREATE INDEX quick_replies_by_workspace ON quick_replies (workspace_id, id);

CREATE TABLE quick_reply_files (
    quick_reply_id BIGINT NOT NULL REFERENCES quick_replies (id),
    place BIGINT NOT NULL,
    file_id BIGINT NOT NULL REFERENCES files (id),
    workspace_id BIGINT NOT NULL,
    PRIMARY KEY (quick_reply_id, place)
);
CREATE INDEX quick_reply_files_by_file ON quick_reply_files (file_id);

-- Lists of the conversations of a channel, and of those that wait to be read.
CREATE INDEX conversations_by_channel ON conversations (channel_id, last_message_id);
CREATE INDEX conversations_unread ON conversations (workspace_id, last_message_id) WHERE unread_count > 0;
CREATE INDEX conversations_read ON conversations (workspace_id, last_message_id) WHERE unread_count = 0;

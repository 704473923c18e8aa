-- Networks call back at least once and in any order. What they say has the time at which it was so, and the latest counts.

-- When the contact said so, which may be before it was recorded.
ALTER TABLE contact_consents ADD COLUMN stated_at TIMESTAMP NOT NULL DEFAULT '1970-01-01 00:00:00';
UPDATE contact_consents SET stated_at = created_at;

ALTER TABLE message_templates ADD COLUMN status_at TIMESTAMP;
ALTER TABLE message_templates ADD COLUMN category_at TIMESTAMP;
ALTER TABLE message_templates ADD COLUMN quality_at TIMESTAMP;
ALTER TABLE channels ADD COLUMN quality_at TIMESTAMP;
ALTER TABLE channels ADD COLUMN messaging_limit_at TIMESTAMP;

-- Edits and deletions of messages, by which those that come twice are known, and replies whose messages are not known yet.
-- What `waits` is applied when its message comes.
CREATE TABLE message_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    channel_id BIGINT NOT NULL,
    provider_change_id TEXT NOT NULL,
    provider_message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    author TEXT,
    content TEXT,
    waits BOOLEAN NOT NULL,
    changed_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX message_changes_by_id ON message_changes (channel_id, provider_change_id);
CREATE INDEX message_changes_by_message ON message_changes (channel_id, provider_message_id);
CREATE INDEX message_changes_by_age ON message_changes (created_at);

-- Numbers and user ids that people have changed.
CREATE TABLE identity_changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    old_value TEXT NOT NULL,
    new_value TEXT NOT NULL,
    changed_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX identity_changes_by_old_value
    ON identity_changes (workspace_id, kind, old_value, new_value, changed_at);
CREATE INDEX identity_changes_by_new_value ON identity_changes (workspace_id, kind, new_value);
CREATE INDEX identity_changes_by_age ON identity_changes (created_at);

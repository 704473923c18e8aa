-- Channels connect numbers on a chat network. What is said over them is messages, in one conversation per channel and
-- contact.

CREATE TABLE channels (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    channel_type TEXT NOT NULL,
    provider TEXT NOT NULL,
    name TEXT NOT NULL,
    address TEXT,
    base_url TEXT NOT NULL,
    number_id TEXT NOT NULL,
    business_id TEXT NOT NULL,
    credentials TEXT NOT NULL,
    status TEXT NOT NULL,
    status_reason TEXT,
    quality TEXT NOT NULL,
    messaging_limit BIGINT,
    messages_per_second BIGINT NOT NULL,
    settings TEXT NOT NULL,
    agent_id BIGINT,
    key_id TEXT,
    last_inbound_at TIMESTAMP,
    checked_at TIMESTAMP,
    lease_epoch BIGINT NOT NULL,
    lease_until TIMESTAMP,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX channels_by_workspace ON channels (workspace_id, id);
CREATE UNIQUE INDEX channels_by_number ON channels (channel_type, base_url, number_id);

-- Errors of a channel's sends and callbacks, for its health.
CREATE TABLE channel_errors (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    channel_id BIGINT NOT NULL REFERENCES channels (id),
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    provider_code BIGINT,
    message_id BIGINT,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX channel_errors_by_channel ON channel_errors (channel_id, id);

CREATE TABLE message_templates (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    channel_id BIGINT NOT NULL REFERENCES channels (id),
    provider_id TEXT,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    language TEXT NOT NULL,
    category TEXT NOT NULL,
    status TEXT NOT NULL,
    rejection_reason TEXT,
    quality TEXT NOT NULL,
    components TEXT NOT NULL,
    last_synced_at TIMESTAMP,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX message_templates_by_name ON message_templates (channel_id, name, language);
CREATE INDEX message_templates_by_channel ON message_templates (channel_id, id);

-- `reply_due_at` is when the agent begins to answer what the contact wrote, if it does; `reply_run_id` the run that
-- answers the messages up to `reply_run_upto`; those up to `reply_upto` were answered. The window for free messages follows from `last_inbound_at`.
CREATE TABLE conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    channel_id BIGINT NOT NULL REFERENCES channels (id),
    contact_id BIGINT NOT NULL,
    status TEXT NOT NULL,
    unread_count BIGINT NOT NULL,
    last_message_id BIGINT NOT NULL,
    last_message_at TIMESTAMP NOT NULL,
    last_inbound_at TIMESTAMP,
    last_outbound_at TIMESTAMP,
    first_reply_at TIMESTAMP,
    snoozed_until TIMESTAMP,
    closed_at TIMESTAMP,
    close_reason TEXT,
    reply_since TIMESTAMP,
    reply_due_at TIMESTAMP,
    reply_epoch BIGINT,
    reply_run_id TEXT,
    reply_run_upto BIGINT,
    reply_upto BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX conversations_by_contact ON conversations (contact_id, channel_id);
CREATE INDEX conversations_by_activity ON conversations (workspace_id, last_message_id);
CREATE INDEX conversations_by_status ON conversations (workspace_id, status, last_message_id);
CREATE INDEX conversations_to_answer ON conversations (channel_id, reply_due_at) WHERE reply_due_at IS NOT NULL;
CREATE INDEX conversations_answering ON conversations (channel_id, id) WHERE reply_run_id IS NOT NULL;

-- `status_rank` only rises. `client_key` names a send among all of its workspace: a send that is asked for again is found
-- by it.
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL REFERENCES conversations (id),
    channel_id BIGINT NOT NULL,
    contact_id BIGINT NOT NULL,
    direction TEXT NOT NULL,
    sender_type TEXT NOT NULL,
    sender_id TEXT,
    message_type TEXT NOT NULL,
    content TEXT NOT NULL,
    detail TEXT,
    reply_to_id BIGINT,
    status TEXT,
    status_rank BIGINT NOT NULL,
    error TEXT,
    attempt BIGINT NOT NULL,
    client_key TEXT,
    provider_message_id TEXT,
    provider_at TIMESTAMP,
    run_id TEXT,
    broadcast_id BIGINT,
    edited_at TIMESTAMP,
    deleted_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX messages_by_conversation ON messages (conversation_id, id);
CREATE INDEX messages_by_contact ON messages (contact_id, id);
CREATE INDEX messages_by_channel ON messages (channel_id, id);
CREATE UNIQUE INDEX messages_by_provider_id ON messages (channel_id, provider_message_id)
    WHERE provider_message_id IS NOT NULL;
CREATE UNIQUE INDEX messages_by_client_key ON messages (workspace_id, client_key) WHERE client_key IS NOT NULL;

-- Every status that the network reported of a message, in the order in which it came.
CREATE TABLE message_statuses (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    message_id BIGINT NOT NULL REFERENCES messages (id),
    status TEXT NOT NULL,
    error TEXT,
    reported_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX message_statuses_by_message ON message_statuses (message_id, id);

-- Statuses that came before the answer to the send: they wait for its id.
CREATE TABLE early_statuses (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    channel_id BIGINT NOT NULL,
    provider_message_id TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    reported_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX early_statuses_by_provider_id ON early_statuses (channel_id, provider_message_id);
CREATE INDEX early_statuses_by_age ON early_statuses (created_at);

CREATE TABLE message_attachments (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    message_id BIGINT NOT NULL REFERENCES messages (id),
    contact_id BIGINT NOT NULL,
    media_type TEXT NOT NULL,
    status TEXT NOT NULL,
    file_id BIGINT REFERENCES files (id),
    provider_media_id TEXT,
    mime_type TEXT,
    name TEXT,
    is_voice BOOLEAN NOT NULL,
    duration_ms BIGINT,
    transcript TEXT,
    transcript_status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    next_attempt_at TIMESTAMP,
    last_error TEXT,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX message_attachments_by_message ON message_attachments (message_id, id);
CREATE INDEX message_attachments_by_contact ON message_attachments (contact_id, id);
CREATE INDEX message_attachments_by_file ON message_attachments (file_id) WHERE file_id IS NOT NULL;
CREATE INDEX message_attachments_due ON message_attachments (next_attempt_at) WHERE next_attempt_at IS NOT NULL;

-- Messages that are to be sent. A row that was claimed and not settled was interrupted: whether the network has the message
-- is not known.
CREATE TABLE message_outbox (
    message_id BIGINT PRIMARY KEY NOT NULL REFERENCES messages (id),
    channel_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    due_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    attempts BIGINT NOT NULL,
    claimed_epoch BIGINT
);
CREATE INDEX message_outbox_due ON message_outbox (channel_id, priority, due_at, message_id);
CREATE INDEX message_outbox_by_conversation ON message_outbox (conversation_id, message_id);

-- Callbacks as the network sent them, stored before they are acknowledged.
CREATE TABLE channel_callbacks (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    channel_id BIGINT NOT NULL REFERENCES channels (id),
    body BLOB NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    due_at TIMESTAMP NOT NULL,
    last_error TEXT,
    received_at TIMESTAMP NOT NULL
);
CREATE INDEX channel_callbacks_waiting ON channel_callbacks (channel_id, id) WHERE status <> 'done';
CREATE INDEX channel_callbacks_by_age ON channel_callbacks (received_at);

-- Events `contact.message.received` that wait for a transcript, and those of later messages of the same contact.
CREATE TABLE held_message_events (
    message_id BIGINT PRIMARY KEY NOT NULL REFERENCES messages (id),
    channel_id BIGINT NOT NULL,
    conversation_id BIGINT NOT NULL,
    due_at TIMESTAMP NOT NULL
);
CREATE INDEX held_message_events_by_channel ON held_message_events (channel_id, due_at);
CREATE INDEX held_message_events_by_conversation ON held_message_events (conversation_id, message_id);

-- Broadcasts send one message template to an audience. When sending starts, the audience becomes rows of recipients with
-- frozen values; these rows are the only truth about what was sent to whom.

CREATE TABLE broadcasts (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    channel_id BIGINT,
    name TEXT NOT NULL,
    template TEXT,
    audience TEXT,
    schedule TEXT,
    rate_per_minute BIGINT,
    frequency_cap TEXT,
    status TEXT NOT NULL,
    pause_reason TEXT,
    starts_at TIMESTAMP,
    prepared_to BIGINT,
    prepared_at TIMESTAMP,
    next_send_at TIMESTAMP,
    judged_from TIMESTAMP,
    started_at TIMESTAMP,
    completed_at TIMESTAMP,
    version BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX broadcasts_by_workspace ON broadcasts (workspace_id, id);
CREATE INDEX broadcasts_by_status ON broadcasts (workspace_id, status, id);

-- `address` is what the message is sent to. Among those who are not skipped no two have the same.
CREATE TABLE broadcast_recipients (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    broadcast_id BIGINT NOT NULL REFERENCES broadcasts (id),
    contact_id BIGINT NOT NULL,
    address TEXT,
    params TEXT,
    state TEXT NOT NULL,
    skip_reason TEXT,
    not_before TIMESTAMP NOT NULL,
    attempt BIGINT NOT NULL,
    message_id BIGINT,
    error TEXT,
    sent_at TIMESTAMP,
    delivered_at TIMESTAMP,
    read_at TIMESTAMP,
    replied_at TIMESTAMP,
    settled_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX broadcast_recipients_by_contact ON broadcast_recipients (broadcast_id, contact_id);
CREATE UNIQUE INDEX broadcast_recipients_by_address ON broadcast_recipients (broadcast_id, address)
    WHERE skip_reason IS NULL;
CREATE INDEX broadcast_recipients_by_id ON broadcast_recipients (broadcast_id, id);
CREATE INDEX broadcast_recipients_by_state ON broadcast_recipients (broadcast_id, state, not_before, id);
CREATE INDEX broadcast_recipients_by_reply ON broadcast_recipients (broadcast_id) WHERE replied_at IS NOT NULL;
CREATE INDEX broadcast_recipients_by_end ON broadcast_recipients (broadcast_id, settled_at)
    WHERE settled_at IS NOT NULL;
CREATE INDEX broadcast_recipients_by_message ON broadcast_recipients (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX broadcast_recipients_of_contact ON broadcast_recipients (contact_id, sent_at);

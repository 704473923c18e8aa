CREATE TABLE inbound_webhooks (
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    token_hash BLOB NOT NULL UNIQUE,
    sealed_token TEXT NOT NULL,
    previous_token_hash BLOB UNIQUE,
    previous_token_until TIMESTAMP,
    settings TEXT NOT NULL,
    sealed_secrets TEXT,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    failing_since TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE inbound_requests (
    workspace_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    status TEXT NOT NULL,
    method TEXT NOT NULL,
    peer TEXT NOT NULL,
    query TEXT NOT NULL,
    content_type TEXT,
    headers TEXT NOT NULL,
    body BLOB NOT NULL,
    body_bytes BIGINT NOT NULL,
    duplicate_of TEXT,
    error TEXT,
    result TEXT,
    event_id TEXT,
    received_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX inbound_requests_by_webhook ON inbound_requests (workspace_id, webhook_id, id);
CREATE INDEX inbound_requests_failed ON inbound_requests (workspace_id, webhook_id, id) WHERE status = 'failed';
CREATE INDEX inbound_requests_by_time ON inbound_requests (received_at);

CREATE TABLE inbound_keys (
    webhook_id TEXT NOT NULL,
    digest BLOB NOT NULL,
    request_id TEXT NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    PRIMARY KEY (webhook_id, digest)
);
CREATE INDEX inbound_keys_by_expiry ON inbound_keys (expires_at);

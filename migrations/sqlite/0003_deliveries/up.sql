-- The place of an event in the log, given by the sequencer in the order of commits; NULL until then.
ALTER TABLE events ADD COLUMN position BIGINT;
ALTER TABLE events ADD COLUMN contact_id BIGINT;
UPDATE events SET position = sequence;
CREATE UNIQUE INDEX events_by_position ON events (position);
CREATE INDEX events_unplaced ON events (sequence) WHERE position IS NULL;
DROP INDEX events_by_workspace;
CREATE INDEX events_in_workspace ON events (workspace_id, position);
CREATE INDEX events_by_kind ON events (workspace_id, kind, position);
CREATE INDEX events_by_contact ON events (workspace_id, contact_id, position) WHERE contact_id IS NOT NULL;

CREATE TABLE event_hours (
    workspace_id BIGINT NOT NULL,
    hour TIMESTAMP NOT NULL,
    kind TEXT NOT NULL,
    events BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, hour, kind)
);

CREATE TABLE webhook_endpoints (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    url TEXT NOT NULL,
    enabled_events TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    disabled_reason TEXT,
    filter TEXT,
    payload TEXT NOT NULL,
    ordering TEXT NOT NULL,
    rate_limit_per_second BIGINT,
    headers TEXT NOT NULL,
    signature_scheme TEXT NOT NULL,
    secret TEXT NOT NULL,
    public_key TEXT,
    previous_secret TEXT,
    previous_until TIMESTAMP,
    key_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    metadata TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX webhook_endpoints_by_workspace ON webhook_endpoints (workspace_id, id);

-- Where an endpoint's deliveries stand: narrow, because it changes with every one of them.
CREATE TABLE webhook_queues (
    endpoint_id TEXT PRIMARY KEY NOT NULL REFERENCES webhook_endpoints (id),
    workspace_id BIGINT NOT NULL,
    due_at TIMESTAMP,
    lease_until TIMESTAMP,
    epoch BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    breaker_step BIGINT NOT NULL,
    breaker_until TIMESTAMP,
    failing_since TIMESTAMP,
    warned_at TIMESTAMP,
    skip_through BIGINT NOT NULL,
    tests BIGINT NOT NULL,
    tests_since TIMESTAMP
);
CREATE INDEX webhook_queues_due ON webhook_queues (due_at) WHERE due_at IS NOT NULL;

CREATE TABLE webhook_bodies (
    event_id TEXT NOT NULL,
    form TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (event_id, form)
);
CREATE INDEX webhook_bodies_by_time ON webhook_bodies (created_at);

CREATE TABLE webhook_deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    workspace_id BIGINT NOT NULL,
    endpoint_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    form TEXT NOT NULL,
    event_type TEXT NOT NULL,
    livemode BOOLEAN NOT NULL,
    origin TEXT NOT NULL,
    status TEXT NOT NULL,
    lane TEXT,
    due_at TIMESTAMP,
    attempts BIGINT NOT NULL,
    first_attempt_at TIMESTAMP,
    ended_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (endpoint_id, due_at, number) WHERE due_at IS NOT NULL;
CREATE INDEX webhook_deliveries_in_lane ON webhook_deliveries (endpoint_id, lane, number)
    WHERE lane IS NOT NULL AND ended_at IS NULL;
CREATE INDEX webhook_deliveries_in_flight ON webhook_deliveries (endpoint_id) WHERE status = 'delivering';
CREATE INDEX webhook_deliveries_by_endpoint ON webhook_deliveries (endpoint_id, number);
CREATE INDEX webhook_deliveries_by_event ON webhook_deliveries (event_id, endpoint_id);

CREATE TABLE webhook_attempts (
    delivery_id TEXT NOT NULL,
    n BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    attempted_at TIMESTAMP NOT NULL,
    duration_ms BIGINT NOT NULL,
    status_code BIGINT,
    error TEXT,
    request_headers TEXT NOT NULL,
    response_headers TEXT,
    response_body TEXT,
    PRIMARY KEY (delivery_id, n)
);

CREATE TABLE webhook_hours (
    endpoint_id TEXT NOT NULL,
    hour TIMESTAMP NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (endpoint_id, hour)
);

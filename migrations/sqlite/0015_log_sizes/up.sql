-- The rows that each workspace has in each log, and their bytes; 0 is the workspace of what belongs to none. In a log that
-- is read on from a position, rows up to `purged_to` are gone.
CREATE TABLE log_sizes (
    log TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    row_count BIGINT NOT NULL,
    bytes BIGINT NOT NULL,
    purged_to BIGINT NOT NULL,
    PRIMARY KEY (log, workspace_id)
) WITHOUT ROWID;

-- How far a log is counted whose writers do not count: to a number or to a time.
CREATE TABLE log_marks (
    log TEXT PRIMARY KEY NOT NULL,
    counted_to BIGINT NOT NULL,
    seen_to BIGINT NOT NULL
) WITHOUT ROWID;

-- Ids begin with the time, so that rows stored in their order need no index for either.
CREATE TABLE slim_request_logs (
    id TEXT PRIMARY KEY NOT NULL,
    created_at TIMESTAMP NOT NULL,
    workspace_id BIGINT,
    key_id TEXT,
    operation TEXT,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    status BIGINT NOT NULL,
    code TEXT,
    gate TEXT,
    livemode BOOLEAN,
    latency_us BIGINT NOT NULL,
    energy BIGINT NOT NULL,
    replayed BOOLEAN NOT NULL,
    client_request_id TEXT
) WITHOUT ROWID;
INSERT INTO slim_request_logs (id, created_at, workspace_id, key_id, operation, method, path, status, code, gate, livemode,
        latency_us, energy, replayed, client_request_id)
    SELECT id, created_at, workspace_id, key_id, operation, method, path, status, code, gate, livemode, latency_us, energy,
        replayed, client_request_id
    FROM request_logs ORDER BY id;
DROP TABLE request_logs;
ALTER TABLE slim_request_logs RENAME TO request_logs;
CREATE INDEX request_logs_by_workspace ON request_logs (workspace_id, id);

-- The oldest rows of a workspace that may be deleted. Bodies are deleted with the last of their deliveries.
CREATE INDEX item_activity_by_workspace ON item_activity (workspace_id, id);
CREATE INDEX webhook_deliveries_ended ON webhook_deliveries (workspace_id, number) WHERE ended_at IS NOT NULL;
DROP INDEX webhook_bodies_by_time;
DELETE FROM webhook_bodies WHERE NOT EXISTS (
    SELECT 1 FROM webhook_deliveries
    WHERE webhook_deliveries.event_id = webhook_bodies.event_id AND webhook_deliveries.form = webhook_bodies.form
);

-- What is there already. The bytes of a row are counted as the program counts them. Activity and received requests are counted
-- in the background.
INSERT INTO log_sizes (log, workspace_id, row_count, bytes, purged_to)
    SELECT 'request_logs', coalesce(workspace_id, 0), count(*),
        CAST(sum(134 + octet_length(path) + coalesce(octet_length(operation), 0)
            + coalesce(octet_length(code), 0) + coalesce(octet_length(gate), 0) + coalesce(octet_length(client_request_id), 0)
            + coalesce(octet_length(key_id), 0)) AS BIGINT), 0
    FROM request_logs GROUP BY coalesce(workspace_id, 0);
INSERT INTO log_marks (log, counted_to, seen_to) VALUES ('item_activity', 0, 0), ('inbound_requests', 0, 0);
INSERT INTO log_sizes (log, workspace_id, row_count, bytes, purged_to)
    SELECT 'webhook_deliveries', workspace_id, CAST(sum(own) AS BIGINT), CAST(sum(bytes) AS BIGINT), 0 FROM (
        SELECT workspace_id, 1 AS own, 560 AS bytes FROM webhook_deliveries
        UNION ALL
        SELECT workspace_id, 0, 140 + octet_length(request_headers) + coalesce(octet_length(response_headers), 0)
            + coalesce(octet_length(response_body), 0) + coalesce(octet_length(error), 0)
        FROM webhook_attempts
        UNION ALL
        SELECT workspace_id, 0, 120 + octet_length(body) FROM webhook_bodies
    ) AS parts GROUP BY workspace_id;
-- Events before the first that is there are gone, whosever they were.
INSERT INTO log_sizes (log, workspace_id, row_count, bytes, purged_to)
    SELECT 'events', workspaces.id, count(events.position),
        coalesce(CAST(sum(220 + octet_length(data) + octet_length(kind) + coalesce(octet_length(actor), 0)
            + coalesce(octet_length(request_id), 0) + coalesce(octet_length(key_id), 0)
            + coalesce(octet_length(idempotency_key), 0) + coalesce(octet_length(root_event_id), 0)) AS BIGINT), 0),
        coalesce((SELECT min(position) - 1 FROM events WHERE position IS NOT NULL), 0)
    FROM workspaces LEFT JOIN events ON events.workspace_id = workspaces.id AND events.position IS NOT NULL
    GROUP BY workspaces.id;

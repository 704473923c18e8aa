-- What functions keep between their calls, as JSON. Calls with live keys and with test keys keep apart.
CREATE TABLE function_kv (
    workspace_id BIGINT NOT NULL,
    function_id BIGINT NOT NULL,
    livemode BOOLEAN NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    size BIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (function_id, livemode, key)
);

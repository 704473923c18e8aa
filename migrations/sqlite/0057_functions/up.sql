-- Functions. The row is the draft.
CREATE TABLE functions (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    settings TEXT NOT NULL,
    code TEXT NOT NULL,
    digest TEXT NOT NULL,
    published_version BIGINT,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX functions_by_name ON functions (workspace_id, name);

-- Published versions, with the key whose rights their calls have.
CREATE TABLE function_versions (
    function_id BIGINT NOT NULL REFERENCES functions (id),
    version BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    settings TEXT NOT NULL,
    code TEXT NOT NULL,
    digest TEXT NOT NULL,
    key_id TEXT NOT NULL,
    lineage_id TEXT NOT NULL,
    env TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (function_id, version)
);

-- The log of calls. A call that may write has its row before it begins. It stays when its function is deleted.
CREATE TABLE function_invocations (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL,
    function_id BIGINT NOT NULL,
    version BIGINT,
    mode TEXT NOT NULL,
    status TEXT NOT NULL,
    input TEXT NOT NULL,
    output TEXT,
    error TEXT,
    logs TEXT,
    fetches TEXT,
    warnings TEXT,
    duration_ms BIGINT,
    memory_peak_bytes BIGINT,
    caller TEXT NOT NULL,
    chain TEXT,
    once_key TEXT,
    lease_until TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    ended_at TIMESTAMP
);
CREATE INDEX function_invocations_by_workspace ON function_invocations (workspace_id, id);
CREATE INDEX function_invocations_by_function ON function_invocations (function_id, id);
CREATE UNIQUE INDEX function_invocations_by_once_key ON function_invocations (function_id, once_key)
    WHERE once_key IS NOT NULL;
CREATE INDEX function_invocations_running ON function_invocations (lease_until) WHERE status = 'running';

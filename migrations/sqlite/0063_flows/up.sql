-- Flows. The row is the draft.
CREATE TABLE flows (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    settings TEXT NOT NULL,
    graph TEXT NOT NULL,
    published_version BIGINT,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX flows_by_name ON flows (workspace_id, name);

CREATE TABLE flow_versions (
    flow_id BIGINT NOT NULL REFERENCES flows (id),
    version BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    settings TEXT NOT NULL,
    graph TEXT NOT NULL,
    scopes TEXT NOT NULL,
    key_id TEXT NOT NULL,
    lineage_id TEXT NOT NULL,
    env TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (flow_id, version)
);

-- Runs of flows. `state` says where the run is. A run has work when `wake_at` is over, and is executed by whoever has its lease.
CREATE TABLE flow_runs (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL,
    flow_id BIGINT NOT NULL,
    version BIGINT,
    livemode BOOLEAN NOT NULL,
    mode TEXT NOT NULL,
    status TEXT NOT NULL,
    pause_reason TEXT,
    contact_id BIGINT,
    automation_id BIGINT,
    key_id TEXT NOT NULL,
    lineage_id TEXT NOT NULL,
    content TEXT NOT NULL,
    state TEXT,
    output TEXT,
    error TEXT,
    response TEXT,
    chain TEXT,
    parent_run_id TEXT,
    root_run_id TEXT NOT NULL,
    nesting BIGINT NOT NULL,
    once_key TEXT,
    attempt BIGINT NOT NULL,
    step_count BIGINT NOT NULL,
    energy BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    wake_at TIMESTAMP,
    lease_until TIMESTAMP,
    expires_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL,
    started_at TIMESTAMP,
    ended_at TIMESTAMP
);
CREATE INDEX flow_runs_by_workspace ON flow_runs (workspace_id, id);
CREATE INDEX flow_runs_by_flow ON flow_runs (flow_id, id);
CREATE UNIQUE INDEX flow_runs_by_once_key ON flow_runs (flow_id, once_key) WHERE once_key IS NOT NULL;
CREATE INDEX flow_runs_due ON flow_runs (wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX flow_runs_leased ON flow_runs (flow_id) WHERE lease_until IS NOT NULL;
CREATE INDEX flow_runs_open ON flow_runs (flow_id, created_at) WHERE ended_at IS NULL;
CREATE INDEX flow_runs_of_contact ON flow_runs (workspace_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX flow_runs_of_parent ON flow_runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX flow_runs_of_automation ON flow_runs (automation_id) WHERE automation_id IS NOT NULL AND ended_at IS NULL;
CREATE INDEX flow_runs_paused ON flow_runs (workspace_id, created_at) WHERE status = 'paused';
CREATE INDEX flow_runs_ended ON flow_runs (expires_at) WHERE ended_at IS NOT NULL;

-- The trace of a run. A node that acts has its row before it acts.
CREATE TABLE flow_steps (
    run_id TEXT NOT NULL REFERENCES flow_runs (id),
    position BIGINT NOT NULL,
    id TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    token BIGINT NOT NULL,
    node_id TEXT NOT NULL,
    node_type TEXT NOT NULL,
    path TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    status TEXT NOT NULL,
    input TEXT,
    output TEXT,
    error TEXT,
    port TEXT,
    energy BIGINT NOT NULL,
    started_at TIMESTAMP NOT NULL,
    ended_at TIMESTAMP,
    PRIMARY KEY (run_id, position)
);

-- What runs wait for. What is awaited is found by kind and key, or by the contact, and is written to `arrived`.
CREATE TABLE flow_waits (
    run_id TEXT NOT NULL REFERENCES flow_runs (id),
    token BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    livemode BOOLEAN NOT NULL,
    position BIGINT NOT NULL,
    kind TEXT NOT NULL,
    topic TEXT,
    key TEXT,
    contact_id BIGINT,
    details TEXT NOT NULL,
    arrived TEXT,
    since TIMESTAMP NOT NULL,
    due_at TIMESTAMP,
    PRIMARY KEY (run_id, token)
);
CREATE INDEX flow_waits_by_key ON flow_waits (kind, key) WHERE key IS NOT NULL;
CREATE INDEX flow_waits_by_topic ON flow_waits (workspace_id, topic) WHERE topic IS NOT NULL;
CREATE INDEX flow_waits_of_contact ON flow_waits (workspace_id, contact_id, kind) WHERE contact_id IS NOT NULL;

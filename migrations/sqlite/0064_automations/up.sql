-- Automations: what starts a target, when and under which conditions.
CREATE TABLE automations (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    suspended_reason TEXT,
    trigger_type TEXT NOT NULL,
    trigger_config TEXT NOT NULL,
    conditions TEXT,
    target_type TEXT NOT NULL,
    target_id BIGINT NOT NULL,
    target_input TEXT NOT NULL,
    policy TEXT NOT NULL,
    active_from TIMESTAMP,
    active_until TIMESTAMP,
    key_id TEXT NOT NULL,
    lineage_id TEXT NOT NULL,
    env TEXT NOT NULL,
    enabled_at TIMESTAMP,
    next_fire_at TIMESTAMP,
    last_fired_at TIMESTAMP,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX automations_by_name ON automations (workspace_id, name);
CREATE INDEX automations_by_trigger ON automations (workspace_id, trigger_type) WHERE status = 'on';
CREATE INDEX automations_of_target ON automations (workspace_id, target_type, target_id);
CREATE INDEX automations_due ON automations (next_fire_at) WHERE next_fire_at IS NOT NULL;

-- The version of the set of a workspace's automations. Readers keep compiled rules in memory for as long as it is the same.
CREATE TABLE automation_sets (
    workspace_id BIGINT PRIMARY KEY NOT NULL,
    version BIGINT NOT NULL
);

-- Occurrences that fit a trigger: what was started, or why nothing was.
CREATE TABLE automation_firings (
    number INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    id TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    automation_id BIGINT NOT NULL,
    occurrence TEXT NOT NULL,
    event_id TEXT,
    kind TEXT NOT NULL,
    contact_id BIGINT,
    livemode BOOLEAN NOT NULL,
    status TEXT NOT NULL,
    reason TEXT,
    details TEXT,
    evaluation TEXT,
    payload TEXT NOT NULL,
    chain TEXT,
    debounce_key TEXT,
    waiting_since TIMESTAMP,
    due_at TIMESTAMP,
    flow_run_id TEXT,
    run_id TEXT,
    invocation_id TEXT,
    outcome TEXT,
    error TEXT,
    created_at TIMESTAMP NOT NULL,
    ended_at TIMESTAMP
);
CREATE UNIQUE INDEX automation_firings_by_id ON automation_firings (id);
CREATE UNIQUE INDEX automation_firings_once ON automation_firings (automation_id, occurrence);
CREATE INDEX automation_firings_by_workspace ON automation_firings (workspace_id, number);
CREATE INDEX automation_firings_of_automation ON automation_firings (automation_id, number);
CREATE INDEX automation_firings_open ON automation_firings (automation_id, status) WHERE status IN ('pending', 'held');
CREATE INDEX automation_firings_debounced ON automation_firings (automation_id, debounce_key) WHERE status = 'pending' AND debounce_key IS NOT NULL;
CREATE INDEX automation_firings_of_contact ON automation_firings (workspace_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX automation_firings_of_flow_run ON automation_firings (flow_run_id) WHERE flow_run_id IS NOT NULL;
CREATE INDEX automation_firings_of_run ON automation_firings (run_id) WHERE run_id IS NOT NULL;

-- What policies remember of earlier firings.
CREATE TABLE automation_marks (
    automation_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    contact_id BIGINT,
    fired_at TIMESTAMP NOT NULL,
    count BIGINT NOT NULL,
    expires_at TIMESTAMP,
    PRIMARY KEY (automation_id, key)
);
CREATE INDEX automation_marks_of_contact ON automation_marks (workspace_id, contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX automation_marks_expired ON automation_marks (expires_at) WHERE expires_at IS NOT NULL;

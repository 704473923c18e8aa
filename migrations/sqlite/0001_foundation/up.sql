CREATE TABLE plans (
    id TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    price_cents BIGINT NOT NULL,
    currency TEXT NOT NULL,
    rate_limit_rpm BIGINT,
    monthly_quota BIGINT,
    test_runs_per_day BIGINT NOT NULL,
    contacts_limit BIGINT,
    included_energy BIGINT NOT NULL,
    usd_micros_per_1000_energy BIGINT NOT NULL,
    restricted BOOLEAN NOT NULL,
    position BIGINT NOT NULL
);

CREATE TABLE partners (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    name TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL
);

CREATE TABLE workspaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    slug TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    partner_id BIGINT REFERENCES partners (id),
    plan_id TEXT REFERENCES plans (id),
    subscription_status TEXT NOT NULL,
    period_start TIMESTAMP,
    period_end TIMESTAMP,
    cancel_at_period_end BOOLEAN NOT NULL,
    blocked_reason TEXT,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX workspaces_by_partner ON workspaces (partner_id, id);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY NOT NULL,
    secret_hash BLOB NOT NULL UNIQUE,
    name TEXT NOT NULL,
    env TEXT NOT NULL,
    scopes TEXT NOT NULL,
    lineage_id TEXT NOT NULL,
    workspace_id BIGINT REFERENCES workspaces (id),
    partner_id BIGINT REFERENCES partners (id),
    default_workspace_id BIGINT REFERENCES workspaces (id),
    rate_limit_rpm BIGINT,
    monthly_quota BIGINT,
    budget_cents BIGINT,
    budget_cutoff BOOLEAN NOT NULL,
    budget_version BIGINT NOT NULL,
    expires_at TIMESTAMP,
    revoked_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX api_keys_by_workspace ON api_keys (workspace_id, id);
CREATE INDEX api_keys_by_partner ON api_keys (partner_id, id);
CREATE INDEX api_keys_by_lineage ON api_keys (lineage_id);

CREATE TABLE key_requests (
    lineage_id TEXT NOT NULL,
    day TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (lineage_id, day, workspace_id)
);
CREATE INDEX key_requests_by_workspace ON key_requests (workspace_id, day);

CREATE TABLE idempotency_keys (
    lineage_id TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    request_id TEXT NOT NULL,
    state TEXT NOT NULL,
    fence BIGINT NOT NULL,
    lease_until TIMESTAMP NOT NULL,
    resource_id TEXT,
    status BIGINT,
    body TEXT,
    expires_at TIMESTAMP NOT NULL,
    PRIMARY KEY (lineage_id, key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

CREATE TABLE request_logs (
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
);
CREATE INDEX request_logs_by_workspace ON request_logs (workspace_id, id);
CREATE INDEX request_logs_by_time ON request_logs (created_at);

CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    workspace_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    livemode BOOLEAN NOT NULL,
    data TEXT NOT NULL,
    request_id TEXT,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX events_by_workspace ON events (workspace_id, sequence);

CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    kind TEXT NOT NULL,
    unique_key TEXT UNIQUE,
    payload TEXT NOT NULL,
    run_at TIMESTAMP NOT NULL,
    attempts BIGINT NOT NULL,
    lease_until TIMESTAMP,
    epoch BIGINT NOT NULL,
    last_error TEXT,
    failed_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX jobs_due ON jobs (run_at) WHERE failed_at IS NULL;

CREATE TABLE agents (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    status TEXT NOT NULL,
    is_default BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    settings TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX agents_by_name ON agents (workspace_id, name_key) WHERE status <> 'archived';
CREATE UNIQUE INDEX agents_default ON agents (workspace_id) WHERE is_default;
CREATE INDEX agents_by_workspace ON agents (workspace_id, id);

CREATE TABLE agent_versions (
    agent_id BIGINT NOT NULL REFERENCES agents (id),
    version BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    settings TEXT NOT NULL,
    tools TEXT NOT NULL,
    key_id TEXT,
    restored_from BIGINT,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (agent_id, version)
);

CREATE TABLE agent_tools (
    agent_id BIGINT NOT NULL REFERENCES agents (id),
    name TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    settings TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (agent_id, name)
);

CREATE TABLE runs (
    workspace_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    livemode BOOLEAN NOT NULL,
    agent_id BIGINT NOT NULL,
    agent_version BIGINT NOT NULL,
    status TEXT NOT NULL,
    input TEXT,
    output TEXT,
    conversation_id TEXT NOT NULL,
    ephemeral BOOLEAN NOT NULL,
    model TEXT NOT NULL,
    incomplete_reason TEXT,
    error TEXT,
    input_tokens BIGINT NOT NULL,
    cached_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    reasoning_tokens BIGINT NOT NULL,
    model_calls BIGINT NOT NULL,
    tool_calls BIGINT NOT NULL,
    energy BIGINT NOT NULL,
    simulated_energy BIGINT NOT NULL,
    options TEXT NOT NULL,
    metadata TEXT NOT NULL,
    key_id TEXT NOT NULL,
    key_lineage TEXT NOT NULL,
    request_id TEXT NOT NULL,
    lease_until TIMESTAMP,
    epoch BIGINT NOT NULL,
    queued_at TIMESTAMP NOT NULL,
    started_at TIMESTAMP,
    completed_at TIMESTAMP,
    purged_at TIMESTAMP,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX runs_by_conversation ON runs (workspace_id, conversation_id, id);
CREATE INDEX runs_by_agent ON runs (workspace_id, agent_id, queued_at);
CREATE INDEX runs_leased ON runs (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX runs_to_purge ON runs (completed_at) WHERE ephemeral AND purged_at IS NULL;

CREATE TABLE run_steps (
    run_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    status TEXT NOT NULL,
    name TEXT NOT NULL,
    input TEXT,
    output TEXT,
    effect_key TEXT,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    energy BIGINT NOT NULL,
    started_at TIMESTAMP NOT NULL,
    completed_at TIMESTAMP,
    PRIMARY KEY (run_id, position)
);

CREATE TABLE test_run_days (
    workspace_id BIGINT NOT NULL,
    day TEXT NOT NULL,
    runs BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, day)
);

CREATE TABLE energy_accounts (
    workspace_id BIGINT PRIMARY KEY NOT NULL REFERENCES workspaces (id),
    balance BIGINT NOT NULL,
    reserved BIGINT NOT NULL,
    state TEXT NOT NULL,
    last_recharge BIGINT NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    CHECK (reserved >= 0),
    CHECK (balance >= reserved)
);

CREATE TABLE energy_grants (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    kind TEXT NOT NULL,
    amount BIGINT NOT NULL,
    remaining BIGINT NOT NULL,
    priority BIGINT NOT NULL,
    usd_micros_per_1000 BIGINT NOT NULL,
    effective_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP,
    voided_at TIMESTAMP,
    note TEXT,
    created_at TIMESTAMP NOT NULL,
    CHECK (remaining >= 0 AND remaining <= amount)
);
CREATE INDEX energy_grants_live ON energy_grants (workspace_id, priority, expires_at, created_at) WHERE remaining > 0;
CREATE INDEX energy_grants_by_workspace ON energy_grants (workspace_id, id);

CREATE TABLE energy_holds (
    run_id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL,
    key_lineage TEXT NOT NULL,
    month TEXT NOT NULL,
    amount BIGINT NOT NULL,
    used BIGINT NOT NULL,
    reserved_micros BIGINT NOT NULL,
    state TEXT NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL,
    CHECK (amount >= 0)
);
CREATE INDEX energy_holds_open ON energy_holds (expires_at) WHERE state = 'open';

CREATE TABLE energy_entries (
    workspace_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    amount BIGINT NOT NULL,
    balance_after BIGINT NOT NULL,
    counter_account TEXT NOT NULL,
    usd_micros BIGINT NOT NULL,
    source_type TEXT NOT NULL,
    source_id TEXT NOT NULL,
    step BIGINT NOT NULL,
    key_id TEXT,
    agent_id BIGINT,
    request_id TEXT,
    operation TEXT NOT NULL,
    model TEXT,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, id),
    UNIQUE (source_type, source_id, step, kind)
);
CREATE INDEX energy_entries_by_time ON energy_entries (workspace_id, created_at);

CREATE TABLE grant_burns (
    entry_id TEXT NOT NULL,
    grant_id TEXT NOT NULL REFERENCES energy_grants (id),
    amount BIGINT NOT NULL,
    PRIMARY KEY (entry_id, grant_id)
);

CREATE TABLE key_months (
    lineage_id TEXT NOT NULL,
    month TEXT NOT NULL,
    spent_micros BIGINT NOT NULL,
    reserved_micros BIGINT NOT NULL,
    PRIMARY KEY (lineage_id, month),
    CHECK (reserved_micros >= 0)
);

CREATE TABLE budget_thresholds (
    lineage_id TEXT NOT NULL,
    month TEXT NOT NULL,
    budget_version BIGINT NOT NULL,
    percent BIGINT NOT NULL,
    fired_at TIMESTAMP NOT NULL,
    PRIMARY KEY (lineage_id, month, budget_version, percent)
);

CREATE TABLE executions (
    workspace_id BIGINT NOT NULL,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    source_id TEXT NOT NULL,
    status TEXT NOT NULL,
    livemode BOOLEAN NOT NULL,
    energy BIGINT NOT NULL,
    usd_micros BIGINT NOT NULL,
    key_id TEXT,
    agent_id BIGINT,
    model TEXT,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE invoices (
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    processor_id TEXT NOT NULL UNIQUE,
    number TEXT NOT NULL,
    status TEXT NOT NULL,
    total_cents BIGINT NOT NULL,
    currency TEXT NOT NULL,
    pdf_url TEXT,
    lines TEXT NOT NULL,
    due_at TIMESTAMP,
    paid_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

CREATE TABLE payment_methods (
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    processor_id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    brand TEXT,
    last4 TEXT,
    exp_month BIGINT,
    exp_year BIGINT,
    is_default BOOLEAN NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, id)
);

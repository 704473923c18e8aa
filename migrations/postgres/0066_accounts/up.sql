-- Members of the team and OAuth apps act through keys without a secret that anybody knows.
ALTER TABLE api_keys ADD COLUMN kind TEXT NOT NULL DEFAULT 'secret';
ALTER TABLE api_keys ADD COLUMN role TEXT;
ALTER TABLE api_keys ADD COLUMN member_id BIGINT;
CREATE INDEX api_keys_by_member ON api_keys (workspace_id, member_id) WHERE member_id IS NOT NULL;

-- People who sign in.
CREATE TABLE accounts (
    id TEXT PRIMARY KEY NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    password_hash TEXT,
    password_changed_at TIMESTAMP,
    operator BOOLEAN NOT NULL,
    disabled_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX accounts_operators ON accounts (id) WHERE operator;

-- The member that an account is in a workspace, and the keys through which it acts.
CREATE TABLE memberships (
    account_id TEXT NOT NULL REFERENCES accounts (id),
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    member_id BIGINT NOT NULL UNIQUE,
    live_key_id TEXT NOT NULL REFERENCES api_keys (id),
    test_key_id TEXT NOT NULL REFERENCES api_keys (id),
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (account_id, workspace_id)
);
CREATE INDEX memberships_by_workspace ON memberships (workspace_id, account_id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY NOT NULL,
    secret_hash BYTEA NOT NULL UNIQUE,
    account_id TEXT NOT NULL REFERENCES accounts (id),
    created_at TIMESTAMP NOT NULL,
    authenticated_at TIMESTAMP NOT NULL,
    last_seen_at TIMESTAMP NOT NULL,
    ends_at TIMESTAMP NOT NULL,
    revoked_at TIMESTAMP,
    address TEXT NOT NULL,
    user_agent TEXT NOT NULL
);
CREATE INDEX sessions_by_account ON sessions (account_id, id);
CREATE INDEX sessions_by_end ON sessions (ends_at);

-- Links that work once: the first operator, an invitation, a new password.
CREATE TABLE one_time_links (
    secret_hash BYTEA PRIMARY KEY NOT NULL,
    purpose TEXT NOT NULL,
    account_id TEXT REFERENCES accounts (id),
    email TEXT,
    workspace_id BIGINT REFERENCES workspaces (id),
    member_id BIGINT,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP
);
CREATE INDEX one_time_links_by_expiry ON one_time_links (expires_at);
CREATE INDEX one_time_links_by_account ON one_time_links (account_id) WHERE account_id IS NOT NULL;

-- Failed attempts to sign in, by a keyed hash of the e-mail address or of the browser.
CREATE TABLE sign_in_failures (
    counter BYTEA PRIMARY KEY NOT NULL,
    failures BIGINT NOT NULL,
    last_at TIMESTAMP NOT NULL,
    next_allowed_at TIMESTAMP NOT NULL
);
CREATE INDEX sign_in_failures_by_time ON sign_in_failures (last_at);

-- Who changed what about access: accounts, members, keys, apps.
CREATE TABLE audit_log (
    id TEXT PRIMARY KEY NOT NULL,
    created_at TIMESTAMP NOT NULL,
    workspace_id BIGINT,
    account_id TEXT,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    details TEXT NOT NULL,
    address TEXT
);
CREATE INDEX audit_log_by_workspace ON audit_log (workspace_id, id);

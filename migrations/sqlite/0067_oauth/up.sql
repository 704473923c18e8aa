-- OAuth apps that a workspace has registered. Apps with a client id metadata document or a sealed client id have no row.
CREATE TABLE oauth_apps (
    id TEXT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    redirect_uris TEXT NOT NULL,
    auth_method TEXT NOT NULL,
    secret_hash BLOB,
    old_secret_hash BLOB,
    old_secret_until TIMESTAMP,
    jwks TEXT,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    revoked_at TIMESTAMP
);
CREATE INDEX oauth_apps_by_workspace ON oauth_apps (workspace_id, id);

-- What a member allowed an app. The scopes, the environment and the end are those of its key.
CREATE TABLE oauth_grants (
    key_id TEXT PRIMARY KEY NOT NULL REFERENCES api_keys (id),
    account_id TEXT NOT NULL REFERENCES accounts (id),
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    member_id BIGINT NOT NULL,
    env TEXT NOT NULL,
    client_id TEXT NOT NULL,
    client_key TEXT NOT NULL,
    client_name TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX oauth_grants_of_client ON oauth_grants (account_id, workspace_id, env, client_key, key_id);
CREATE INDEX oauth_grants_by_workspace ON oauth_grants (workspace_id, key_id);
CREATE INDEX oauth_grants_by_client ON oauth_grants (client_key, key_id);

CREATE TABLE oauth_codes (
    code_hash BLOB PRIMARY KEY NOT NULL,
    key_id TEXT NOT NULL REFERENCES api_keys (id),
    client_id TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    challenge TEXT NOT NULL,
    resource TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    used_at TIMESTAMP,
    family_id TEXT
);
CREATE INDEX oauth_codes_by_grant ON oauth_codes (key_id);
CREATE INDEX oauth_codes_by_expiry ON oauth_codes (expires_at);

-- The tokens that came of one code. Only the newest refresh token of a family is active.
CREATE TABLE oauth_families (
    id TEXT PRIMARY KEY NOT NULL,
    key_id TEXT NOT NULL REFERENCES api_keys (id),
    client_id TEXT NOT NULL,
    resource TEXT NOT NULL,
    refresh_hash BLOB NOT NULL UNIQUE,
    generation BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    refreshed_at TIMESTAMP NOT NULL,
    idle_end_at TIMESTAMP NOT NULL,
    ends_at TIMESTAMP NOT NULL,
    revoked_at TIMESTAMP
);
CREATE INDEX oauth_families_by_grant ON oauth_families (key_id);
CREATE INDEX oauth_families_by_end ON oauth_families (idle_end_at);

-- Refresh tokens that were used. Their answers are sealed and kept for a moment, for clients that did not receive them.
CREATE TABLE oauth_used_refresh_tokens (
    refresh_hash BLOB PRIMARY KEY NOT NULL,
    family_id TEXT NOT NULL REFERENCES oauth_families (id),
    used_at TIMESTAMP NOT NULL,
    answer TEXT
);
CREATE INDEX oauth_used_refresh_tokens_by_family ON oauth_used_refresh_tokens (family_id);
CREATE INDEX oauth_used_refresh_tokens_by_time ON oauth_used_refresh_tokens (used_at);
CREATE INDEX oauth_used_refresh_tokens_with_answer ON oauth_used_refresh_tokens (used_at) WHERE answer IS NOT NULL;

CREATE TABLE oauth_access_tokens (
    token_hash BLOB PRIMARY KEY NOT NULL,
    family_id TEXT NOT NULL REFERENCES oauth_families (id),
    key_id TEXT NOT NULL REFERENCES api_keys (id),
    resource TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    expires_at TIMESTAMP NOT NULL,
    revoked_at TIMESTAMP
);
CREATE INDEX oauth_access_tokens_by_family ON oauth_access_tokens (family_id);
CREATE INDEX oauth_access_tokens_by_expiry ON oauth_access_tokens (expires_at);

-- The ids of assertions by which clients authenticated, so that none is accepted twice.
CREATE TABLE oauth_used_assertions (
    hash BLOB PRIMARY KEY NOT NULL,
    expires_at TIMESTAMP NOT NULL
);
CREATE INDEX oauth_used_assertions_by_expiry ON oauth_used_assertions (expires_at);

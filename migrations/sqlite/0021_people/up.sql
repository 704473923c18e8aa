-- The members of a workspace's team.
CREATE TABLE team_members (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    role TEXT NOT NULL,
    avatar_url TEXT,
    availability TEXT NOT NULL,
    available_at TIMESTAMP,
    capacity BIGINT,
    languages TEXT NOT NULL,
    joined_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX team_members_by_email ON team_members (workspace_id, email_key);

-- What a business says about itself: one row for each workspace that has a profile.
CREATE TABLE business_profiles (
    workspace_id BIGINT PRIMARY KEY NOT NULL REFERENCES workspaces (id),
    profile TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);

-- Values that agents, functions and flows refer to by key. A secret has a sealed value, any other a value as JSON.
CREATE TABLE variables (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    key TEXT NOT NULL,
    env TEXT NOT NULL,
    kind TEXT NOT NULL,
    value TEXT,
    sealed_value TEXT,
    description TEXT,
    group_name TEXT,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    last_set_at TIMESTAMP NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX variables_by_key ON variables (workspace_id, key, env);

-- Contacts are records of the engine. These tables have what is written about them, and what groups them.
CREATE TABLE contact_notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    contact_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    pinned BOOLEAN NOT NULL,
    author TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX contact_notes_by_contact ON contact_notes (contact_id, id);

CREATE TABLE contact_segments (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    kind TEXT NOT NULL,
    description TEXT,
    filter TEXT,
    version BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX contact_segments_by_name ON contact_segments (workspace_id, name_key);

-- Whether contacts agreed to broadcasts, with the proof. Rows are only added.
CREATE TABLE contact_consents (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    contact_id BIGINT NOT NULL,
    state TEXT NOT NULL,
    source TEXT NOT NULL,
    proof TEXT,
    actor TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX contact_consents_by_contact ON contact_consents (contact_id, id);

-- Contacts that were merged into others, by whose ids the survivors are found.
CREATE TABLE contact_merges (
    merged_id BIGINT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL,
    survivor_id BIGINT NOT NULL,
    external_id TEXT,
    actor TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX contact_merges_by_survivor ON contact_merges (survivor_id);
CREATE INDEX contact_merges_by_external_id ON contact_merges (workspace_id, external_id) WHERE external_id IS NOT NULL;

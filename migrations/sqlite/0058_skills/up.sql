-- Skills: the row of a skill is its draft; publishing freezes it as a version. The version 0 of its files is the draft's.
CREATE TABLE skills (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    display_name TEXT,
    activation TEXT NOT NULL,
    variables TEXT NOT NULL,
    source TEXT NOT NULL,
    status TEXT NOT NULL,
    fields TEXT NOT NULL,
    files_digest TEXT NOT NULL,
    published_version BIGINT,
    published_digest TEXT,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX skills_by_name ON skills (workspace_id, name);
CREATE INDEX skills_by_workspace ON skills (workspace_id, id);

CREATE TABLE skill_versions (
    skill_id BIGINT NOT NULL REFERENCES skills (id),
    version BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    display_name TEXT,
    activation TEXT NOT NULL,
    variables TEXT NOT NULL,
    fields TEXT NOT NULL,
    files_digest TEXT NOT NULL,
    terms TEXT NOT NULL,
    key_id TEXT,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (skill_id, version)
);

CREATE TABLE skill_files (
    skill_id BIGINT NOT NULL REFERENCES skills (id),
    version BIGINT NOT NULL,
    path TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (skill_id, version, path)
);
CREATE INDEX skill_files_by_content ON skill_files (skill_id, sha256);

-- The bytes of the files of a skill, each once: in the row if they are few, else in object storage.
CREATE TABLE skill_contents (
    skill_id BIGINT NOT NULL REFERENCES skills (id),
    sha256 TEXT NOT NULL,
    bytes BLOB,
    storage_key TEXT,
    PRIMARY KEY (skill_id, sha256)
);
CREATE INDEX skill_contents_by_object ON skill_contents (storage_key) WHERE storage_key IS NOT NULL;

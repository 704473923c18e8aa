CREATE TABLE collection_groups (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    position BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX collection_groups_by_name ON collection_groups (workspace_id, name_key);

CREATE TABLE collections (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    group_id BIGINT REFERENCES collection_groups (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    slug TEXT NOT NULL,
    description TEXT,
    icon TEXT,
    color TEXT,
    primary_field_id BIGINT,
    position BIGINT NOT NULL,
    status TEXT NOT NULL,
    settings TEXT NOT NULL,
    shape_version BIGINT NOT NULL,
    item_count BIGINT NOT NULL,
    item_count_at TIMESTAMP,
    version BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    trashed_at TIMESTAMP
);
CREATE INDEX collections_by_workspace ON collections (workspace_id, position, id);
CREATE UNIQUE INDEX collections_by_name ON collections (workspace_id, name_key) WHERE trashed_at IS NULL;
CREATE UNIQUE INDEX collections_by_slug ON collections (workspace_id, slug) WHERE trashed_at IS NULL;
CREATE INDEX collections_in_trash ON collections (trashed_at) WHERE trashed_at IS NOT NULL;

CREATE TABLE collection_fields (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL REFERENCES collections (id),
    field_key TEXT NOT NULL,
    label TEXT NOT NULL,
    kind TEXT NOT NULL,
    description TEXT,
    required BOOLEAN NOT NULL,
    is_unique BOOLEAN NOT NULL,
    default_value TEXT,
    options TEXT NOT NULL,
    position BIGINT NOT NULL,
    archived BOOLEAN NOT NULL,
    next_number BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    trashed_at TIMESTAMP
);
CREATE UNIQUE INDEX collection_fields_by_key ON collection_fields (collection_id, field_key);

CREATE TABLE collection_views (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL REFERENCES collections (id),
    name TEXT NOT NULL,
    name_key TEXT NOT NULL,
    kind TEXT NOT NULL,
    settings TEXT NOT NULL,
    is_default BOOLEAN NOT NULL,
    locked BOOLEAN NOT NULL,
    position BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX collection_views_by_name ON collection_views (collection_id, name_key);

CREATE TABLE collection_indexes (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL REFERENCES collections (id),
    kind TEXT NOT NULL,
    parts TEXT NOT NULL,
    origin TEXT NOT NULL,
    status TEXT NOT NULL,
    built_to BIGINT NOT NULL,
    rows_done BIGINT NOT NULL,
    rows_total BIGINT NOT NULL,
    error TEXT,
    last_used_at TIMESTAMP,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX collection_indexes_by_collection ON collection_indexes (collection_id, id);

-- What a change of the schema still has to do to items that were there before.
CREATE TABLE collection_rewrites (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL REFERENCES collections (id),
    field_id BIGINT,
    change TEXT NOT NULL,
    walked_to BIGINT NOT NULL,
    items_done BIGINT NOT NULL,
    items_total BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX collection_rewrites_by_collection ON collection_rewrites (collection_id, id);

CREATE TABLE items (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL,
    data TEXT NOT NULL,
    title TEXT NOT NULL,
    more TEXT,
    position TEXT,
    external_key TEXT,
    comment_count BIGINT NOT NULL,
    locked_by TEXT,
    locked_at TIMESTAMP,
    version BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    updated_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    trashed_at TIMESTAMP
);
CREATE INDEX items_live ON items (collection_id, id) WHERE trashed_at IS NULL;
CREATE INDEX items_in_trash ON items (collection_id, id) WHERE trashed_at IS NOT NULL;
CREATE INDEX items_by_trashing ON items (trashed_at) WHERE trashed_at IS NOT NULL;
CREATE INDEX items_by_position ON items (collection_id, position, id) WHERE position IS NOT NULL;
CREATE UNIQUE INDEX items_by_external_key ON items (collection_id, external_key)
    WHERE external_key IS NOT NULL AND trashed_at IS NULL;

CREATE TABLE item_keys (
    index_id BIGINT NOT NULL,
    k BLOB NOT NULL,
    item_id BIGINT NOT NULL,
    PRIMARY KEY (index_id, k, item_id)
) WITHOUT ROWID;

CREATE TABLE item_unique (
    index_id BIGINT NOT NULL,
    h BLOB NOT NULL,
    item_id BIGINT NOT NULL,
    PRIMARY KEY (index_id, h)
) WITHOUT ROWID;

-- Terms made by the service, each carrying its collection, so that both databases find the same.
CREATE VIRTUAL TABLE item_search USING fts5 (terms, content='', contentless_delete=1, tokenize='ascii');

CREATE TABLE item_links (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL,
    item_id BIGINT NOT NULL,
    field_id BIGINT NOT NULL,
    to_kind TEXT NOT NULL,
    to_collection_id BIGINT,
    to_id TEXT NOT NULL,
    role TEXT,
    note TEXT,
    position BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX item_links_out ON item_links (item_id, field_id, to_kind, to_id);
CREATE INDEX item_links_by_place ON item_links (item_id, field_id, position, id);
CREATE INDEX item_links_in ON item_links (to_kind, to_id, workspace_id, field_id, item_id);
CREATE INDEX item_links_of_field ON item_links (field_id, id);

CREATE TABLE item_comments (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL,
    item_id BIGINT NOT NULL,
    parent_id BIGINT,
    field_key TEXT,
    body TEXT NOT NULL,
    mentions TEXT NOT NULL,
    attachments TEXT NOT NULL,
    author TEXT NOT NULL,
    resolved_at TIMESTAMP,
    edited_at TIMESTAMP,
    deleted BOOLEAN NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX item_comments_by_item ON item_comments (item_id, id);

CREATE TABLE item_activity (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL,
    item_id BIGINT,
    action TEXT NOT NULL,
    changed TEXT NOT NULL,
    actor TEXT NOT NULL,
    source TEXT NOT NULL,
    operation_id TEXT,
    created_at TIMESTAMP NOT NULL
);
CREATE INDEX item_activity_by_item ON item_activity (item_id, id);
CREATE INDEX item_activity_by_collection ON item_activity (collection_id, id);

CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    name TEXT NOT NULL,
    mime_type TEXT NOT NULL,
    size BIGINT NOT NULL,
    sha256 TEXT NOT NULL,
    storage_key TEXT NOT NULL,
    path_token TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    uploaded_by TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    trashed_at TIMESTAMP
);
CREATE INDEX files_by_workspace ON files (workspace_id, id);

CREATE TABLE item_files (
    item_id BIGINT NOT NULL,
    file_id BIGINT NOT NULL REFERENCES files (id),
    workspace_id BIGINT NOT NULL,
    collection_id BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    PRIMARY KEY (item_id, file_id)
) WITHOUT ROWID;
CREATE INDEX item_files_by_file ON item_files (file_id);

-- Tasks are records of the engine. These tables have how they depend on each other, and what is written about them.

-- What is counted of live tasks, and followed from one to another.
CREATE TABLE task_states (
    task_id BIGINT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL,
    parent_id BIGINT,
    status TEXT NOT NULL,
    user_id BIGINT,
    agent_id BIGINT,
    due_at TIMESTAMP,
    start_at TIMESTAMP,
    is_blocked BOOLEAN NOT NULL
);
CREATE INDEX task_states_by_workspace ON task_states (workspace_id, status);
CREATE INDEX task_states_by_parent ON task_states (parent_id);

CREATE TABLE task_dependencies (
    task_id BIGINT NOT NULL,
    blocker_id BIGINT NOT NULL,
    workspace_id BIGINT NOT NULL,
    PRIMARY KEY (task_id, blocker_id)
);
CREATE INDEX task_dependencies_by_blocker ON task_dependencies (blocker_id);

CREATE TABLE task_comments (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL,
    task_id BIGINT NOT NULL,
    body TEXT NOT NULL,
    author TEXT NOT NULL,
    edited_at TIMESTAMP,
    version BIGINT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX task_comments_by_task ON task_comments (task_id, id);

CREATE TABLE task_files (
    task_id BIGINT NOT NULL,
    file_id BIGINT NOT NULL REFERENCES files (id),
    workspace_id BIGINT NOT NULL,
    attached_by TEXT NOT NULL,
    attached_at TIMESTAMP NOT NULL,
    PRIMARY KEY (task_id, file_id)
);
CREATE INDEX task_files_by_file ON task_files (file_id);

-- What is left of the older turns of a conversation: a summary of all up to `through_run`.
CREATE TABLE conversation_memories (
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    conversation_id TEXT NOT NULL,
    agent_id BIGINT NOT NULL,
    livemode BOOLEAN NOT NULL,
    summary TEXT NOT NULL,
    through_run TEXT NOT NULL,
    updated_at TIMESTAMP NOT NULL,
    PRIMARY KEY (workspace_id, conversation_id, agent_id, livemode)
);

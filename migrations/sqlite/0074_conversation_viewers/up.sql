-- Who has a conversation open in the dashboard. The page refreshes its row; a row that is older than a minute counts no more.
CREATE TABLE conversation_viewers (
    conversation_id BIGINT NOT NULL REFERENCES conversations (id),
    member_id BIGINT NOT NULL,
    is_writing BOOLEAN NOT NULL,
    seen_at TIMESTAMP NOT NULL,
    PRIMARY KEY (conversation_id, member_id)
);

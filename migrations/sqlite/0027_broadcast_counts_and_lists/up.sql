-- How many recipients a broadcast has in each state, and in the state `replied` how many have replied: the sum of `number`
-- over its rows. Whoever changes recipients only adds rows, so that nobody waits for anybody; they are summed up from time
-- to time. Triggers write them, so that they are always those of the recipients.
CREATE TABLE broadcast_counts (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    broadcast_id BIGINT NOT NULL,
    state TEXT NOT NULL,
    number BIGINT NOT NULL
);
CREATE INDEX broadcast_counts_by_broadcast ON broadcast_counts (broadcast_id, state, number);

INSERT INTO broadcast_counts (broadcast_id, state, number)
SELECT broadcast_id, state, COUNT(*) FROM broadcast_recipients GROUP BY broadcast_id, state
UNION ALL
SELECT broadcast_id, 'replied', COUNT(*) FROM broadcast_recipients WHERE replied_at IS NOT NULL GROUP BY broadcast_id;

CREATE TRIGGER broadcast_recipients_added AFTER INSERT ON broadcast_recipients
BEGIN
    INSERT INTO broadcast_counts (broadcast_id, state, number) VALUES (NEW.broadcast_id, NEW.state, 1);
    INSERT INTO broadcast_counts (broadcast_id, state, number)
    SELECT NEW.broadcast_id, 'replied', 1 WHERE NEW.replied_at IS NOT NULL;
END;

CREATE TRIGGER broadcast_recipients_changed AFTER UPDATE OF state, replied_at ON broadcast_recipients
WHEN OLD.state <> NEW.state OR (OLD.replied_at IS NULL) <> (NEW.replied_at IS NULL)
BEGIN
    INSERT INTO broadcast_counts (broadcast_id, state, number)
    SELECT OLD.broadcast_id, OLD.state, -1 WHERE OLD.state <> NEW.state
    UNION ALL SELECT NEW.broadcast_id, NEW.state, 1 WHERE OLD.state <> NEW.state
    UNION ALL SELECT OLD.broadcast_id, 'replied', -1 WHERE OLD.replied_at IS NOT NULL AND NEW.replied_at IS NULL
    UNION ALL SELECT NEW.broadcast_id, 'replied', 1 WHERE OLD.replied_at IS NULL AND NEW.replied_at IS NOT NULL;
END;

CREATE TRIGGER broadcast_recipients_removed AFTER DELETE ON broadcast_recipients
BEGIN
    INSERT INTO broadcast_counts (broadcast_id, state, number) VALUES (OLD.broadcast_id, OLD.state, -1);
    INSERT INTO broadcast_counts (broadcast_id, state, number)
    SELECT OLD.broadcast_id, 'replied', -1 WHERE OLD.replied_at IS NOT NULL;
END;

-- Lists of conversations with two conditions.
CREATE INDEX conversations_by_channel_and_status ON conversations (channel_id, status, last_message_id);
CREATE INDEX conversations_unread_by_channel ON conversations (channel_id, last_message_id) WHERE unread_count > 0;
CREATE INDEX conversations_unread_by_status ON conversations (workspace_id, status, last_message_id)
    WHERE unread_count > 0;

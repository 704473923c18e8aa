-- Callbacks are a log with a size. The oldest of a channel that may be deleted are found by this index, and those that are
-- too old in the order of their ids.
DROP INDEX channel_callbacks_by_age;
CREATE INDEX channel_callbacks_ended ON channel_callbacks (channel_id, id) WHERE status <> 'pending';
INSERT INTO log_marks (log, counted_to, seen_to) VALUES ('channel_callbacks', 0, 0);

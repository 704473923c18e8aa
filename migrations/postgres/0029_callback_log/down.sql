DELETE FROM log_marks WHERE log = 'channel_callbacks';
DELETE FROM log_sizes WHERE log = 'channel_callbacks';
DROP INDEX channel_callbacks_ended;
CREATE INDEX channel_callbacks_by_age ON channel_callbacks (received_at);

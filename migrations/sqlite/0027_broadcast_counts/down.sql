DROP TRIGGER broadcast_recipients_added;
DROP TRIGGER broadcast_recipients_changed;
DROP TRIGGER broadcast_recipients_removed;
DROP TABLE broadcast_counts;

ALTER TABLE events DROP COLUMN depth;
ALTER TABLE events DROP COLUMN root_event_id;
ALTER TABLE events DROP COLUMN actor;
ALTER TABLE events DROP COLUMN idempotency_key;
ALTER TABLE events DROP COLUMN key_id;

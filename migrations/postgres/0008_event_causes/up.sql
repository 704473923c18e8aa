-- Where an event comes from: who asked and how, who did it, and the first event of the chain that led to it.
ALTER TABLE events ADD COLUMN key_id TEXT;
ALTER TABLE events ADD COLUMN idempotency_key TEXT;
ALTER TABLE events ADD COLUMN actor TEXT;
ALTER TABLE events ADD COLUMN root_event_id TEXT;
ALTER TABLE events ADD COLUMN depth BIGINT NOT NULL DEFAULT 0;
UPDATE events SET key_id = (SELECT key_id FROM request_logs WHERE request_logs.id = events.request_id)
    WHERE request_id IS NOT NULL;
UPDATE events SET actor = '{"type":"api_key","id":"' || key_id || '"}' WHERE key_id IS NOT NULL;

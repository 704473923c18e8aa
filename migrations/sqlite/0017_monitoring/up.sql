-- Runs that have not ended are counted by their status.
CREATE INDEX runs_open ON runs (status) WHERE completed_at IS NULL;

-- The trace that a request came with. Without one, the request's own id is its trace.
ALTER TABLE request_logs ADD COLUMN trace_id TEXT;
ALTER TABLE events ADD COLUMN traceparent TEXT;
-- The trace that deliveries of the event carry on; NULL where it is that of the event's id.
ALTER TABLE webhook_bodies ADD COLUMN traceparent TEXT;

ALTER TABLE webhook_bodies DROP COLUMN traceparent;
ALTER TABLE events DROP COLUMN traceparent;
ALTER TABLE request_logs DROP COLUMN trace_id;
DROP INDEX runs_open;

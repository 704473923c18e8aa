-- What a refused request was told, and about which parameter.
ALTER TABLE request_logs ADD COLUMN message TEXT;
ALTER TABLE request_logs ADD COLUMN param TEXT;
-- Failures are looked for among many successes.
CREATE INDEX request_logs_failures ON request_logs (workspace_id, id) WHERE status >= 400;

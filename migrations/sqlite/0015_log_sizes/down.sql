DROP TABLE log_sizes;
DROP TABLE log_marks;
DROP INDEX item_activity_by_workspace;
DROP INDEX webhook_deliveries_ended;
CREATE INDEX webhook_bodies_by_time ON webhook_bodies (created_at);
CREATE INDEX request_logs_by_time ON request_logs (created_at);

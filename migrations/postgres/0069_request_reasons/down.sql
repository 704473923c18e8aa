DROP INDEX request_logs_failures;
ALTER TABLE request_logs DROP COLUMN param;
ALTER TABLE request_logs DROP COLUMN message;

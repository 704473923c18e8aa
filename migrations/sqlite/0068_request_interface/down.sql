ALTER TABLE request_logs DROP COLUMN interface;

DROP INDEX request_hours_by_key;

-- When a key was last used: the newest of its sums.
CREATE INDEX request_hours_by_key ON request_hours (key_id, hour);

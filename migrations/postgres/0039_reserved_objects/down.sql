CREATE INDEX files_pending ON files (created_at) WHERE status = 'pending';
INSERT INTO unused_objects (storage_key, created_at) SELECT storage_key, reserved_at FROM reserved_objects;
DROP TABLE reserved_objects;

-- Whose work a job is, so that one workspace's jobs leave room for those of others. NULL: nobody's in particular.
ALTER TABLE jobs ADD COLUMN workspace_id BIGINT;

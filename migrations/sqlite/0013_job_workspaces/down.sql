ALTER TABLE jobs DROP COLUMN workspace_id;

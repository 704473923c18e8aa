ALTER TABLE workspaces DROP COLUMN first_steps_hidden;

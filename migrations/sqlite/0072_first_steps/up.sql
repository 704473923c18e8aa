-- Whether the people of a workspace have put the list of first steps away.
ALTER TABLE workspaces ADD COLUMN first_steps_hidden BOOLEAN NOT NULL DEFAULT FALSE;

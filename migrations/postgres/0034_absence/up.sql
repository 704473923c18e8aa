-- Since when a member of a team takes no work, so that what waits for the member can be given to others.
ALTER TABLE team_members ADD COLUMN absent_since TIMESTAMP;
UPDATE team_members SET absent_since = updated_at WHERE availability <> 'online';

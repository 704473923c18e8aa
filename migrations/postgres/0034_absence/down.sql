ALTER TABLE team_members DROP COLUMN absent_since;

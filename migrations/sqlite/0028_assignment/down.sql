DROP TABLE contacts_without_assignee;
ALTER TABLE team_members DROP COLUMN last_assigned_at;

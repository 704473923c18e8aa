-- Contacts whom no agent answers and who are assigned to no one, so that a member of the team can be given the oldest.
CREATE TABLE contacts_without_assignee (
    contact_id BIGINT PRIMARY KEY NOT NULL,
    workspace_id BIGINT NOT NULL,
    waiting_since TIMESTAMP NOT NULL
);
CREATE INDEX contacts_without_assignee_by_time ON contacts_without_assignee (workspace_id, waiting_since, contact_id);

-- When the service itself last assigned a conversation to the member.
ALTER TABLE team_members ADD COLUMN last_assigned_at TIMESTAMP;

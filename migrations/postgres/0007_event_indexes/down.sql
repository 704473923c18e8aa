DROP INDEX events_by_position;
DROP INDEX events_in_workspace;
DROP INDEX events_by_kind;
DROP INDEX events_by_contact;
CREATE UNIQUE INDEX events_by_position ON events (position);
CREATE INDEX events_in_workspace ON events (workspace_id, position);
CREATE INDEX events_by_kind ON events (workspace_id, kind, position);
CREATE INDEX events_by_contact ON events (workspace_id, contact_id, position) WHERE contact_id IS NOT NULL;

-- An event that has no place yet stands in no list: so the indexes of lists need not know it, and giving it a place moves
-- nothing in them.
DROP INDEX events_by_position;
DROP INDEX events_in_workspace;
DROP INDEX events_by_kind;
DROP INDEX events_by_contact;
CREATE UNIQUE INDEX events_by_position ON events (position) WHERE position IS NOT NULL;
CREATE INDEX events_in_workspace ON events (workspace_id, position) WHERE position IS NOT NULL;
CREATE INDEX events_by_kind ON events (workspace_id, kind, position) WHERE position IS NOT NULL;
CREATE INDEX events_by_contact ON events (workspace_id, contact_id, position)
    WHERE contact_id IS NOT NULL AND position IS NOT NULL;

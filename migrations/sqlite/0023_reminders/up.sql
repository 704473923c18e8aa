-- What a workspace is reminded of. `wake_at` is when a reminder fires next, if it does.
CREATE TABLE reminders (
    id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
    workspace_id BIGINT NOT NULL REFERENCES workspaces (id),
    livemode BOOLEAN NOT NULL,
    title TEXT NOT NULL,
    note TEXT,
    status TEXT NOT NULL,
    due_at TIMESTAMP NOT NULL,
    timezone TEXT NOT NULL,
    recurrence TEXT,
    contact_id BIGINT,
    assignee_id BIGINT REFERENCES team_members (id) ON DELETE SET NULL,
    action TEXT NOT NULL,
    cancel_on_reply BOOLEAN NOT NULL,
    next_slot_at TIMESTAMP,
    slots_done BIGINT NOT NULL,
    snoozed_until TIMESTAMP,
    wake_at TIMESTAMP,
    last_fired_at TIMESTAMP,
    fire_count BIGINT NOT NULL,
    last_error TEXT,
    key_id TEXT NOT NULL,
    metadata TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMP NOT NULL,
    updated_at TIMESTAMP NOT NULL
);
CREATE INDEX reminders_by_workspace ON reminders (workspace_id, id);
CREATE INDEX reminders_by_contact ON reminders (contact_id) WHERE contact_id IS NOT NULL;
CREATE INDEX reminders_by_assignee ON reminders (assignee_id) WHERE assignee_id IS NOT NULL;
CREATE INDEX reminders_due ON reminders (wake_at, id) WHERE wake_at IS NOT NULL;

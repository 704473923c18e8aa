-- What automations wait for by the clock: the next slot of a schedule, the next look for dates, and the end of a silence.
-- A row goes, or moves on, in the transaction that makes its firing.
CREATE TABLE automation_timers (
    automation_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    workspace_id BIGINT NOT NULL,
    contact_id BIGINT,
    since TIMESTAMP NOT NULL,
    due_at TIMESTAMP NOT NULL,
    details TEXT NOT NULL,
    chain TEXT,
    PRIMARY KEY (automation_id, key)
);
CREATE INDEX automation_timers_due ON automation_timers (due_at);
CREATE INDEX automation_timers_of_contact ON automation_timers (workspace_id, contact_id) WHERE contact_id IS NOT NULL;

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

-- What guards count: firings by time, runs that have not ended, and how runs have ended.
CREATE INDEX automation_firings_counted ON automation_firings (automation_id, created_at) WHERE status IN ('pending', 'dispatched', 'held');
CREATE INDEX automation_firings_running ON automation_firings (automation_id) WHERE status = 'dispatched' AND outcome IS NULL;
CREATE INDEX automation_firings_outcomes ON automation_firings (automation_id, ended_at, outcome) WHERE outcome IS NOT NULL;

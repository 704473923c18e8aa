-- Every plan has periods from now on: one that had no end begins the period that it is with the next renewal.
UPDATE workspaces SET period_end = period_start
    WHERE period_end IS NULL AND plan_id IS NOT NULL AND subscription_status IN ('active', 'sponsored');
CREATE INDEX workspaces_to_renew ON workspaces (period_end, id)
    WHERE subscription_status IN ('active', 'sponsored') AND plan_id IS NOT NULL;

-- The steps of the attempt that a hold is for, and that an execution was.
ALTER TABLE energy_holds ADD COLUMN first_step BIGINT NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN first_step BIGINT NOT NULL DEFAULT 0;
ALTER TABLE executions ADD COLUMN last_step BIGINT;

-- A grant that is not given yet.
ALTER TABLE energy_grants ADD COLUMN pending BOOLEAN NOT NULL DEFAULT FALSE;
CREATE INDEX energy_grants_pending ON energy_grants (effective_at, id) WHERE pending;

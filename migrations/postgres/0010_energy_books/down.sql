DROP INDEX energy_grants_pending;
ALTER TABLE energy_grants DROP COLUMN pending;
ALTER TABLE executions DROP COLUMN last_step;
ALTER TABLE executions DROP COLUMN first_step;
ALTER TABLE energy_holds DROP COLUMN first_step;
DROP INDEX workspaces_to_renew;

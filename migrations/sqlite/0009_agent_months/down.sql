DROP INDEX energy_holds_by_agent;
ALTER TABLE energy_holds DROP COLUMN agent_id;
DROP TABLE agent_months;

-- What an agent's runs have spent in a month, and whose Energy an open hold is: what an agent's monthly limit asks for.
CREATE TABLE agent_months (
    workspace_id BIGINT NOT NULL,
    agent_id BIGINT NOT NULL,
    month TEXT NOT NULL,
    spent BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, agent_id, month)
);
-- A refund counts in the month of its run's hold, as its debits do.
INSERT INTO agent_months (workspace_id, agent_id, month, spent)
    SELECT e.workspace_id, e.agent_id, COALESCE(h.month, substr(e.created_at, 1, 7)), -SUM(e.amount)
    FROM energy_entries e LEFT JOIN energy_holds h ON e.source_type = 'run' AND h.run_id = e.source_id
    WHERE e.agent_id IS NOT NULL AND e.kind IN ('debit', 'refund')
    GROUP BY 1, 2, 3 HAVING SUM(e.amount) < 0;
ALTER TABLE energy_holds ADD COLUMN agent_id BIGINT NOT NULL DEFAULT 0;
UPDATE energy_holds SET agent_id = COALESCE((SELECT runs.agent_id FROM runs
    WHERE runs.workspace_id = energy_holds.workspace_id AND runs.id = energy_holds.run_id), 0);
CREATE INDEX energy_holds_by_agent ON energy_holds (workspace_id, agent_id) WHERE state = 'open';

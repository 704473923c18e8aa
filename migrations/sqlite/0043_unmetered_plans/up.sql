-- Work on a plan that does not meter Energy is not paid from the balance: only what it would have cost is recorded.
ALTER TABLE plans ADD COLUMN energy_metered BOOLEAN NOT NULL DEFAULT TRUE;

-- A run stays as its plan was when it first held Energy.
ALTER TABLE energy_holds ADD COLUMN metered BOOLEAN NOT NULL DEFAULT TRUE;

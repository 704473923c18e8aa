-- Runs that have not ended are counted by their status.
CREATE INDEX runs_open ON runs (status) WHERE completed_at IS NULL;

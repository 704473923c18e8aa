DROP INDEX runs_open;

DROP TABLE flow_waits;
DROP TABLE flow_steps;
DROP TABLE flow_runs;
DROP TABLE flow_versions;
DROP TABLE flows;

DELETE FROM log_sizes WHERE log = 'function_invocations';
DROP TABLE function_invocations;
DROP TABLE function_versions;
DROP TABLE functions;

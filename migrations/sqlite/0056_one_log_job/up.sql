-- The job logs.trim deletes old rows of the request log.
DELETE FROM jobs WHERE kind = 'request_logs.purge';

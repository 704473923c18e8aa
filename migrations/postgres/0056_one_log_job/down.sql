-- The earlier version creates its job when it starts.
SELECT 1;

-- The task whose reminder it is.
ALTER TABLE reminders ADD COLUMN task_id BIGINT;
CREATE INDEX reminders_by_task ON reminders (task_id) WHERE task_id IS NOT NULL;

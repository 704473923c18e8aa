DROP INDEX reminders_by_task;
ALTER TABLE reminders DROP COLUMN task_id;

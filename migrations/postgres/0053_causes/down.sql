ALTER TABLE events DROP COLUMN automations;
ALTER TABLE broadcasts DROP COLUMN chain;
ALTER TABLE reminders DROP COLUMN chain;
ALTER TABLE messages DROP COLUMN chain;
ALTER TABLE jobs DROP COLUMN chain;

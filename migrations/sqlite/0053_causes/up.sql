-- The place in a chain of causes, as JSON, of what goes on when the request that led to it has ended.
ALTER TABLE jobs ADD COLUMN chain TEXT;
ALTER TABLE messages ADD COLUMN chain TEXT;
ALTER TABLE reminders ADD COLUMN chain TEXT;
ALTER TABLE broadcasts ADD COLUMN chain TEXT;

-- The automations that the chain of an event went through, as a JSON array of ids.
ALTER TABLE events ADD COLUMN automations TEXT;

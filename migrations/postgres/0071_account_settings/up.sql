-- How the dashboard speaks to a person.
ALTER TABLE accounts ADD COLUMN locale TEXT NOT NULL DEFAULT 'en';

ALTER TABLE accounts DROP COLUMN locale;

DROP TABLE identity_changes;
DROP TABLE message_changes;
ALTER TABLE channels DROP COLUMN messaging_limit_at;
ALTER TABLE channels DROP COLUMN quality_at;
ALTER TABLE message_templates DROP COLUMN quality_at;
ALTER TABLE message_templates DROP COLUMN category_at;
ALTER TABLE message_templates DROP COLUMN status_at;
ALTER TABLE contact_consents DROP COLUMN stated_at;

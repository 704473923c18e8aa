DROP TABLE files_without_message;
DROP INDEX message_attachments_received;

DROP TABLE quick_reply_files;
DROP TABLE quick_replies;
DROP INDEX messages_by_reply;
DROP TABLE message_terms;

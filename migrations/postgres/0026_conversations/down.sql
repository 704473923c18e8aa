DROP TABLE quick_reply_files;
DROP TABLE quick_replies;
DROP INDEX conversations_read;
DROP INDEX conversations_unread;
DROP INDEX conversations_by_channel;
DROP INDEX messages_by_reply;
DROP TABLE message_terms;

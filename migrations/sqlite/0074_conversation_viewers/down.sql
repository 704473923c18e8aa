DROP TABLE conversation_viewers;

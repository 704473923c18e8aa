DROP TABLE broadcast_recipients;
DROP TABLE broadcasts;

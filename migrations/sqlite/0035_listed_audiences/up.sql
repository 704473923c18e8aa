-- How far a file that lists the audience of a broadcast was read, in bytes.
ALTER TABLE broadcasts ADD COLUMN prepared_bytes BIGINT NOT NULL DEFAULT 0;

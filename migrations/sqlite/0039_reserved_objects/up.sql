-- Objects that are being written. The transaction that makes a file of one deletes its row; what stays for a day is deleted.
CREATE TABLE reserved_objects (
    storage_key TEXT PRIMARY KEY NOT NULL,
    reserved_at TIMESTAMP NOT NULL
);

-- Before, a file had a row while its bytes were being stored.
INSERT INTO unused_objects (storage_key, created_at) SELECT storage_key, created_at FROM files WHERE status = 'pending';
DELETE FROM files WHERE status = 'pending';
DROP INDEX files_pending;

-- How the entries of a unique index are made of values. Entries of indexes that are there stay as they are.
ALTER TABLE collection_indexes ADD COLUMN key_format TEXT NOT NULL DEFAULT 'hashed';

-- What is written on trial after a write has found no room. Empty otherwise.
CREATE TABLE room_trials (
    id TEXT PRIMARY KEY NOT NULL,
    filler BLOB NOT NULL
);

-- How far each consumer has read the log of events, and which process reads for it: the newest epoch, until the lease ends.
CREATE TABLE event_readers (
    name TEXT NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    epoch BIGINT NOT NULL,
    lease_until TIMESTAMP,
    updated_at TIMESTAMP NOT NULL
);

-- Sums of the request log per hour, which outlive its rows. `within_N` counts the requests that took at most as long as the
-- N-th bound of `operation::request_hours`.
CREATE TABLE request_hours (
    workspace_id BIGINT NOT NULL,
    hour TIMESTAMP NOT NULL,
    key_id TEXT NOT NULL,
    class TEXT NOT NULL,
    requests BIGINT NOT NULL,
    within_0 BIGINT NOT NULL,
    within_1 BIGINT NOT NULL,
    within_2 BIGINT NOT NULL,
    within_3 BIGINT NOT NULL,
    within_4 BIGINT NOT NULL,
    within_5 BIGINT NOT NULL,
    within_6 BIGINT NOT NULL,
    within_7 BIGINT NOT NULL,
    within_8 BIGINT NOT NULL,
    within_9 BIGINT NOT NULL,
    within_10 BIGINT NOT NULL,
    within_11 BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, hour, key_id, class)
) WITHOUT ROWID;
CREATE INDEX request_hours_by_time ON request_hours (hour);

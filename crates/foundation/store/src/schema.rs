//! The tables that the store itself writes, as diesel sees them on both databases: the outbox of events,
//! jobs, and the sizes of logs.

diesel::table! {
    events (sequence) {
        sequence -> BigInt,
        id -> Text,
        workspace_id -> BigInt,
        kind -> Text,
        livemode -> Bool,
        data -> Text,
        request_id -> Nullable<Text>,
        created_at -> Timestamp,
        position -> Nullable<BigInt>,
        contact_id -> Nullable<BigInt>,
        key_id -> Nullable<Text>,
        idempotency_key -> Nullable<Text>,
        actor -> Nullable<Text>,
        root_event_id -> Nullable<Text>,
        depth -> BigInt,
        traceparent -> Nullable<Text>,
        automations -> Nullable<Text>,
    }
}

diesel::table! {
    jobs (id) {
        id -> BigInt,
        kind -> Text,
        unique_key -> Nullable<Text>,
        payload -> Text,
        run_at -> Timestamp,
        attempts -> BigInt,
        lease_until -> Nullable<Timestamp>,
        epoch -> BigInt,
        last_error -> Nullable<Text>,
        failed_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        workspace_id -> Nullable<BigInt>,
        chain -> Nullable<Text>,
    }
}

diesel::table! {
    log_sizes (log, workspace_id) {
        log -> Text,
        workspace_id -> BigInt,
        row_count -> BigInt,
        bytes -> BigInt,
        purged_to -> BigInt,
    }
}

diesel::table! {
    log_marks (log) {
        log -> Text,
        counted_to -> BigInt,
        seen_to -> BigInt,
    }
}

diesel::table! {
    room_trials (id) {
        id -> Text,
        filler -> Binary,
    }
}

//! Tables of the event log, as diesel sees them on both databases.

diesel::table! {
    event_hours (workspace_id, hour, kind) {
        workspace_id -> BigInt,
        hour -> Timestamp,
        kind -> Text,
        events -> BigInt,
    }
}

diesel::table! {
    event_readers (name) {
        name -> Text,
        position -> BigInt,
        epoch -> BigInt,
        lease_until -> Nullable<Timestamp>,
        updated_at -> Timestamp,
    }
}

//! Tables of the event log, as diesel sees them on both databases.

diesel::table! {
    event_hours (workspace_id, hour, kind) {
        workspace_id -> BigInt,
        hour -> Timestamp,
        kind -> Text,
        events -> BigInt,
    }
}

//! The table of the request log, as diesel sees it on both databases.

diesel::table! {
    request_logs (id) {
        id -> Text,
        created_at -> Timestamp,
        workspace_id -> Nullable<BigInt>,
        key_id -> Nullable<Text>,
        operation -> Nullable<Text>,
        method -> Text,
        path -> Text,
        status -> BigInt,
        code -> Nullable<Text>,
        gate -> Nullable<Text>,
        livemode -> Nullable<Bool>,
        latency_us -> BigInt,
        energy -> BigInt,
        replayed -> Bool,
        client_request_id -> Nullable<Text>,
        trace_id -> Nullable<Text>,
        interface -> Nullable<Text>,
    }
}

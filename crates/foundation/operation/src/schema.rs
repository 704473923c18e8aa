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
        message -> Nullable<Text>,
        param -> Nullable<Text>,
    }
}

diesel::table! {
    request_hours (workspace_id, hour, key_id, class) {
        workspace_id -> BigInt,
        hour -> Timestamp,
        key_id -> Text,
        class -> Text,
        requests -> BigInt,
        within_0 -> BigInt,
        within_1 -> BigInt,
        within_2 -> BigInt,
        within_3 -> BigInt,
        within_4 -> BigInt,
        within_5 -> BigInt,
        within_6 -> BigInt,
        within_7 -> BigInt,
        within_8 -> BigInt,
        within_9 -> BigInt,
        within_10 -> BigInt,
        within_11 -> BigInt,
    }
}

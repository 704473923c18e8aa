//! Tables of functions, as diesel sees them on both databases.

diesel::table! {
    functions (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        status -> Text,
        settings -> Text,
        code -> Text,
        digest -> Text,
        published_version -> Nullable<BigInt>,
        metadata -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    function_versions (function_id, version) {
        function_id -> BigInt,
        version -> BigInt,
        workspace_id -> BigInt,
        settings -> Text,
        code -> Text,
        digest -> Text,
        key_id -> Text,
        lineage_id -> Text,
        env -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    function_invocations (id) {
        id -> Text,
        workspace_id -> BigInt,
        function_id -> BigInt,
        version -> Nullable<BigInt>,
        mode -> Text,
        status -> Text,
        input -> Text,
        output -> Nullable<Text>,
        error -> Nullable<Text>,
        logs -> Nullable<Text>,
        fetches -> Nullable<Text>,
        warnings -> Nullable<Text>,
        duration_ms -> Nullable<BigInt>,
        memory_peak_bytes -> Nullable<BigInt>,
        caller -> Text,
        chain -> Nullable<Text>,
        once_key -> Nullable<Text>,
        lease_until -> Nullable<Timestamp>,
        created_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(functions, function_versions, function_invocations);

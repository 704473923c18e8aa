//! The table of what functions keep, as diesel sees it on both databases.

diesel::table! {
    function_kv (function_id, livemode, key) {
        workspace_id -> BigInt,
        function_id -> BigInt,
        livemode -> Bool,
        key -> Text,
        value -> Text,
        size -> BigInt,
        updated_at -> Timestamp,
    }
}

//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    quick_replies (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        shortcode -> Text,
        title -> Text,
        body -> Text,
        buttons -> Text,
        language -> Nullable<Text>,
        scope -> Text,
        key_id -> Nullable<Text>,
        usage_count -> BigInt,
        last_used_at -> Nullable<Timestamp>,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    quick_reply_files (quick_reply_id, place) {
        quick_reply_id -> BigInt,
        place -> BigInt,
        file_id -> BigInt,
        workspace_id -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(quick_replies, quick_reply_files);

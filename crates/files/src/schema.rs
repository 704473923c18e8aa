//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    files (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        mime_type -> Text,
        size -> BigInt,
        sha256 -> Text,
        storage_key -> Text,
        path_token -> Text,
        status -> Text,
        uploaded_by -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        trashed_at -> Nullable<Timestamp>,
    }
}

//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    collection_groups (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        name_key -> Text,
        position -> BigInt,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

//! The tables of this group.

diesel::table! {
    contact_notes (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        contact_id -> BigInt,
        body -> Text,
        pinned -> Bool,
        author -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    contact_segments (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        name_key -> Text,
        kind -> Text,
        description -> Nullable<Text>,
        filter -> Nullable<Text>,
        version -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

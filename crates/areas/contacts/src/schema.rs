//! The tables of this crate, as diesel sees them on both databases.

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

diesel::table! {
    contact_consents (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        contact_id -> BigInt,
        state -> Text,
        source -> Text,
        proof -> Nullable<Text>,
        actor -> Text,
        created_at -> Timestamp,
        stated_at -> Timestamp,
    }
}

diesel::table! {
    contacts_without_assignee (contact_id) {
        contact_id -> BigInt,
        workspace_id -> BigInt,
        waiting_since -> Timestamp,
    }
}

diesel::table! {
    contact_merges (merged_id) {
        merged_id -> BigInt,
        workspace_id -> BigInt,
        survivor_id -> BigInt,
        external_id -> Nullable<Text>,
        actor -> Text,
        created_at -> Timestamp,
    }
}

//! The tables of this crate for diesel, on both databases.

diesel::table! {
    team_members (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        email -> Text,
        email_key -> Text,
        role -> Text,
        avatar_url -> Nullable<Text>,
        availability -> Text,
        available_at -> Nullable<Timestamp>,
        capacity -> Nullable<BigInt>,
        languages -> Text,
        joined_at -> Timestamp,
        updated_at -> Timestamp,
        last_assigned_at -> Nullable<Timestamp>,
        absent_since -> Nullable<Timestamp>,
    }
}

diesel::table! {
    business_profiles (workspace_id) {
        workspace_id -> BigInt,
        profile -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

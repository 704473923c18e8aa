//! Tables of variables, as diesel sees them on both databases.

diesel::table! {
    variables (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        key -> Text,
        env -> Text,
        kind -> Text,
        value -> Nullable<Text>,
        sealed_value -> Nullable<Text>,
        description -> Nullable<Text>,
        group_name -> Nullable<Text>,
        metadata -> Text,
        version -> BigInt,
        last_set_at -> Timestamp,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

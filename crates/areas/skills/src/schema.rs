//! Tables of skills, as diesel sees them on both databases.

diesel::table! {
    skills (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        display_name -> Nullable<Text>,
        activation -> Text,
        variables -> Text,
        source -> Text,
        status -> Text,
        fields -> Text,
        files_digest -> Text,
        published_version -> Nullable<BigInt>,
        published_digest -> Nullable<Text>,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    skill_versions (skill_id, version) {
        skill_id -> BigInt,
        version -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        display_name -> Nullable<Text>,
        activation -> Text,
        variables -> Text,
        fields -> Text,
        files_digest -> Text,
        terms -> Text,
        key_id -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    skill_files (skill_id, version, path) {
        skill_id -> BigInt,
        version -> BigInt,
        path -> Text,
        media_type -> Text,
        size -> BigInt,
        sha256 -> Text,
    }
}

diesel::table! {
    skill_contents (skill_id, sha256) {
        skill_id -> BigInt,
        sha256 -> Text,
        bytes -> Nullable<Binary>,
        storage_key -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(skills, skill_versions, skill_files, skill_contents);

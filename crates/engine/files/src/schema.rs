//! The tables of this crate for diesel, on both databases.

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
        declared_type -> Nullable<Text>,
        kind -> Text,
        width -> Nullable<BigInt>,
        height -> Nullable<BigInt>,
        duration_ms -> Nullable<BigInt>,
        folder -> Nullable<Text>,
        tags -> Text,
        metadata -> Text,
        folded_name -> Text,
    }
}

diesel::table! {
    reserved_objects (storage_key) {
        storage_key -> Text,
        reserved_at -> Timestamp,
    }
}

diesel::table! {
    unused_objects (storage_key) {
        storage_key -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    uploads (id) {
        id -> Text,
        workspace_id -> BigInt,
        details -> Text,
        size -> Nullable<BigInt>,
        sha256 -> Nullable<Text>,
        uploaded_by -> Text,
        file_id -> Nullable<BigInt>,
        created_at -> Timestamp,
        expires_at -> Timestamp,
    }
}

diesel::table! {
    upload_parts (upload_id, number) {
        upload_id -> Text,
        number -> BigInt,
        size -> BigInt,
        sha256 -> Text,
        storage_key -> Text,
        created_at -> Timestamp,
    }
}

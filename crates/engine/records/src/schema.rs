//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    collections (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        group_id -> Nullable<BigInt>,
        name -> Text,
        name_key -> Text,
        slug -> Text,
        description -> Nullable<Text>,
        icon -> Nullable<Text>,
        color -> Nullable<Text>,
        primary_field_id -> Nullable<BigInt>,
        position -> BigInt,
        status -> Text,
        settings -> Text,
        shape_version -> BigInt,
        item_count -> BigInt,
        item_count_at -> Nullable<Timestamp>,
        version -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        trashed_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    collection_fields (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        field_key -> Text,
        label -> Text,
        kind -> Text,
        description -> Nullable<Text>,
        required -> Bool,
        is_unique -> Bool,
        default_value -> Nullable<Text>,
        options -> Text,
        position -> BigInt,
        archived -> Bool,
        next_number -> BigInt,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        trashed_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    collection_views (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        name -> Text,
        name_key -> Text,
        kind -> Text,
        settings -> Text,
        is_default -> Bool,
        locked -> Bool,
        position -> BigInt,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    collection_indexes (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        kind -> Text,
        parts -> Text,
        origin -> Text,
        status -> Text,
        built_to -> BigInt,
        rows_done -> BigInt,
        rows_total -> BigInt,
        error -> Nullable<Text>,
        last_used_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        columns_revision -> BigInt,
        key_format -> Text,
    }
}

diesel::table! {
    collection_rewrites (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        field_id -> Nullable<BigInt>,
        change -> Text,
        walked_to -> BigInt,
        items_done -> BigInt,
        items_total -> BigInt,
        created_at -> Timestamp,
    }
}

diesel::table! {
    items (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        data -> Text,
        title -> Text,
        more -> Nullable<Text>,
        position -> Nullable<Text>,
        external_key -> Nullable<Text>,
        comment_count -> BigInt,
        locked_by -> Nullable<Text>,
        locked_at -> Nullable<Timestamp>,
        version -> BigInt,
        created_by -> Text,
        updated_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        trashed_at -> Nullable<Timestamp>,
        computed_errors -> Nullable<Text>,
    }
}

diesel::table! {
    item_keys (index_id, k, item_id) {
        index_id -> BigInt,
        k -> Binary,
        item_id -> BigInt,
    }
}

diesel::table! {
    item_columns (index_id, last_id, column_id) {
        index_id -> BigInt,
        last_id -> BigInt,
        column_id -> BigInt,
        data -> Binary,
    }
}

diesel::table! {
    item_changes (id) {
        id -> BigInt,
        index_id -> BigInt,
        item_id -> BigInt,
    }
}

diesel::table! {
    item_unique (index_id, h) {
        index_id -> BigInt,
        h -> Binary,
        item_id -> BigInt,
    }
}

diesel::table! {
    item_links (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        item_id -> BigInt,
        field_id -> BigInt,
        to_kind -> Text,
        to_collection_id -> Nullable<BigInt>,
        to_id -> Text,
        role -> Nullable<Text>,
        note -> Nullable<Text>,
        position -> BigInt,
        version -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    item_comments (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        item_id -> BigInt,
        parent_id -> Nullable<BigInt>,
        field_key -> Nullable<Text>,
        body -> Text,
        mentions -> Text,
        attachments -> Text,
        author -> Text,
        resolved_at -> Nullable<Timestamp>,
        edited_at -> Nullable<Timestamp>,
        deleted -> Bool,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    item_activity (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        item_id -> Nullable<BigInt>,
        action -> Text,
        changed -> Text,
        actor -> Text,
        source -> Text,
        operation_id -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    item_files (item_id, file_id) {
        item_id -> BigInt,
        file_id -> BigInt,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    collections,
    collection_fields,
    collection_views,
    collection_indexes,
    collection_rewrites,
    items,
    item_keys,
    item_columns,
    item_changes,
    item_unique,
    item_links,
    item_comments,
    item_activity,
    item_files
);

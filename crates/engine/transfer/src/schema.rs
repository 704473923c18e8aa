//! The tables of this crate for diesel, on both databases.

diesel::table! {
    item_imports (id) {
        id -> Text,
        workspace_id -> BigInt,
        collection_id -> BigInt,
        status -> Text,
        file_id -> BigInt,
        settings -> Text,
        source -> Nullable<Text>,
        bytes_total -> Nullable<BigInt>,
        bytes_done -> BigInt,
        rows_total -> Nullable<BigInt>,
        rows_done -> BigInt,
        created_count -> BigInt,
        updated_count -> BigInt,
        unchanged_count -> BigInt,
        skipped_count -> BigInt,
        failed_count -> BigInt,
        error -> Nullable<Text>,
        error_file_id -> Nullable<BigInt>,
        created_by -> Text,
        created_at -> Timestamp,
        started_at -> Nullable<Timestamp>,
        finished_at -> Nullable<Timestamp>,
        skipped_value_count -> BigInt,
    }
}

diesel::table! {
    item_import_errors (import_id, row_number) {
        import_id -> Text,
        row_number -> BigInt,
        record -> Text,
        errors -> Text,
        is_rejected -> Bool,
    }
}

diesel::allow_tables_to_appear_in_same_query!(item_imports, item_import_errors);

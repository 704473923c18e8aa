//! The tables of this crate, as diesel sees them on both databases.

diesel::table! {
    broadcasts (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        channel_id -> Nullable<BigInt>,
        name -> Text,
        template -> Nullable<Text>,
        audience -> Nullable<Text>,
        schedule -> Nullable<Text>,
        rate_per_minute -> Nullable<BigInt>,
        frequency_cap -> Nullable<Text>,
        status -> Text,
        pause_reason -> Nullable<Text>,
        starts_at -> Nullable<Timestamp>,
        prepared_to -> Nullable<BigInt>,
        prepared_at -> Nullable<Timestamp>,
        next_send_at -> Nullable<Timestamp>,
        judged_from -> Nullable<Timestamp>,
        started_at -> Nullable<Timestamp>,
        completed_at -> Nullable<Timestamp>,
        version -> BigInt,
        created_by -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        prepared_bytes -> BigInt,
        chain -> Nullable<Text>,
    }
}

diesel::table! {
    broadcast_recipients (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        broadcast_id -> BigInt,
        contact_id -> BigInt,
        address -> Nullable<Text>,
        params -> Nullable<Text>,
        state -> Text,
        skip_reason -> Nullable<Text>,
        not_before -> Timestamp,
        attempt -> BigInt,
        message_id -> Nullable<BigInt>,
        error -> Nullable<Text>,
        sent_at -> Nullable<Timestamp>,
        delivered_at -> Nullable<Timestamp>,
        read_at -> Nullable<Timestamp>,
        replied_at -> Nullable<Timestamp>,
        settled_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    broadcast_counts (id) {
        id -> BigInt,
        broadcast_id -> BigInt,
        state -> Text,
        number -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(broadcasts, broadcast_recipients, broadcast_counts);

//! The tables of this crate for diesel, on both databases.

diesel::table! {
    channels (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        channel_type -> Text,
        provider -> Text,
        name -> Text,
        address -> Nullable<Text>,
        base_url -> Text,
        number_id -> Text,
        business_id -> Text,
        credentials -> Text,
        status -> Text,
        status_reason -> Nullable<Text>,
        quality -> Text,
        messaging_limit -> Nullable<BigInt>,
        messages_per_second -> BigInt,
        settings -> Text,
        agent_id -> Nullable<BigInt>,
        key_id -> Nullable<Text>,
        last_inbound_at -> Nullable<Timestamp>,
        checked_at -> Nullable<Timestamp>,
        lease_epoch -> BigInt,
        lease_until -> Nullable<Timestamp>,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        quality_at -> Nullable<Timestamp>,
        messaging_limit_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    channel_errors (id) {
        id -> BigInt,
        channel_id -> BigInt,
        code -> Text,
        message -> Text,
        provider_code -> Nullable<BigInt>,
        message_id -> Nullable<BigInt>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    message_templates (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        channel_id -> BigInt,
        provider_id -> Nullable<Text>,
        namespace -> Text,
        name -> Text,
        language -> Text,
        category -> Text,
        status -> Text,
        rejection_reason -> Nullable<Text>,
        quality -> Text,
        components -> Text,
        last_synced_at -> Nullable<Timestamp>,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
        status_at -> Nullable<Timestamp>,
        category_at -> Nullable<Timestamp>,
        quality_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    channel_callbacks (id) {
        id -> BigInt,
        channel_id -> BigInt,
        body -> Binary,
        status -> Text,
        attempts -> BigInt,
        due_at -> Timestamp,
        last_error -> Nullable<Text>,
        received_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(channels, channel_errors, message_templates, channel_callbacks,);

//! Tables of inbound webhooks, as diesel sees them on both databases.

diesel::table! {
    inbound_webhooks (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        name -> Text,
        status -> Text,
        token_hash -> Binary,
        sealed_token -> Text,
        previous_token_hash -> Nullable<Binary>,
        previous_token_until -> Nullable<Timestamp>,
        settings -> Text,
        sealed_secrets -> Nullable<Text>,
        metadata -> Text,
        version -> BigInt,
        failures -> BigInt,
        failing_since -> Nullable<Timestamp>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    inbound_requests (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        webhook_id -> Text,
        status -> Text,
        method -> Text,
        peer -> Text,
        query -> Text,
        content_type -> Nullable<Text>,
        headers -> Text,
        body -> Binary,
        body_bytes -> BigInt,
        duplicate_of -> Nullable<Text>,
        error -> Nullable<Text>,
        result -> Nullable<Text>,
        event_id -> Nullable<Text>,
        received_at -> Timestamp,
    }
}

diesel::table! {
    inbound_keys (webhook_id, digest) {
        webhook_id -> Text,
        digest -> Binary,
        request_id -> Text,
        expires_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(inbound_webhooks, inbound_requests, inbound_keys);

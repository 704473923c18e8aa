//! Tables of outbound webhooks, as diesel sees them on both databases.

diesel::table! {
    webhook_endpoints (id) {
        id -> Text,
        workspace_id -> BigInt,
        url -> Text,
        enabled_events -> Text,
        description -> Nullable<Text>,
        status -> Text,
        disabled_reason -> Nullable<Text>,
        filter -> Nullable<Text>,
        payload -> Text,
        ordering -> Text,
        rate_limit_per_second -> Nullable<BigInt>,
        headers -> Text,
        signature_scheme -> Text,
        secret -> Text,
        public_key -> Nullable<Text>,
        previous_secret -> Nullable<Text>,
        previous_until -> Nullable<Timestamp>,
        key_id -> Text,
        version -> BigInt,
        metadata -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    webhook_queues (endpoint_id) {
        endpoint_id -> Text,
        workspace_id -> BigInt,
        due_at -> Nullable<Timestamp>,
        lease_until -> Nullable<Timestamp>,
        epoch -> BigInt,
        failures -> BigInt,
        breaker_step -> BigInt,
        breaker_until -> Nullable<Timestamp>,
        failing_since -> Nullable<Timestamp>,
        warned_at -> Nullable<Timestamp>,
        skip_through -> BigInt,
        tests -> BigInt,
        tests_since -> Nullable<Timestamp>,
    }
}

diesel::table! {
    webhook_bodies (event_id, form) {
        event_id -> Text,
        form -> Text,
        workspace_id -> BigInt,
        body -> Text,
        created_at -> Timestamp,
        traceparent -> Nullable<Text>,
    }
}

diesel::table! {
    webhook_deliveries (number) {
        number -> BigInt,
        id -> Text,
        workspace_id -> BigInt,
        endpoint_id -> Text,
        event_id -> Text,
        form -> Text,
        event_type -> Text,
        livemode -> Bool,
        origin -> Text,
        status -> Text,
        lane -> Nullable<Text>,
        due_at -> Nullable<Timestamp>,
        attempts -> BigInt,
        first_attempt_at -> Nullable<Timestamp>,
        ended_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    webhook_attempts (delivery_id, n) {
        delivery_id -> Text,
        n -> BigInt,
        workspace_id -> BigInt,
        attempted_at -> Timestamp,
        duration_ms -> BigInt,
        status_code -> Nullable<BigInt>,
        error -> Nullable<Text>,
        request_headers -> Text,
        response_headers -> Nullable<Text>,
        response_body -> Nullable<Text>,
    }
}

diesel::table! {
    webhook_hours (endpoint_id, hour) {
        endpoint_id -> Text,
        hour -> Timestamp,
        succeeded -> BigInt,
        failed -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    webhook_endpoints,
    webhook_queues,
    webhook_bodies,
    webhook_deliveries,
    webhook_attempts,
    webhook_hours
);

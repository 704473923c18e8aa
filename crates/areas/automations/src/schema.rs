//! Tables of automations, as diesel sees them on both databases.

diesel::table! {
    automations (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        description -> Nullable<Text>,
        status -> Text,
        suspended_reason -> Nullable<Text>,
        trigger_type -> Text,
        trigger_config -> Text,
        conditions -> Nullable<Text>,
        target_type -> Text,
        target_id -> BigInt,
        target_input -> Text,
        policy -> Text,
        active_from -> Nullable<Timestamp>,
        active_until -> Nullable<Timestamp>,
        key_id -> Text,
        lineage_id -> Text,
        env -> Text,
        enabled_at -> Nullable<Timestamp>,
        next_fire_at -> Nullable<Timestamp>,
        last_fired_at -> Nullable<Timestamp>,
        metadata -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    automation_sets (workspace_id) {
        workspace_id -> BigInt,
        version -> BigInt,
    }
}

diesel::table! {
    automation_firings (number) {
        number -> BigInt,
        id -> Text,
        workspace_id -> BigInt,
        automation_id -> BigInt,
        occurrence -> Text,
        event_id -> Nullable<Text>,
        kind -> Text,
        contact_id -> Nullable<BigInt>,
        livemode -> Bool,
        status -> Text,
        reason -> Nullable<Text>,
        details -> Nullable<Text>,
        evaluation -> Nullable<Text>,
        payload -> Text,
        chain -> Nullable<Text>,
        debounce_key -> Nullable<Text>,
        waiting_since -> Nullable<Timestamp>,
        due_at -> Nullable<Timestamp>,
        flow_run_id -> Nullable<Text>,
        run_id -> Nullable<Text>,
        invocation_id -> Nullable<Text>,
        outcome -> Nullable<Text>,
        error -> Nullable<Text>,
        created_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    automation_marks (automation_id, key) {
        automation_id -> BigInt,
        key -> Text,
        workspace_id -> BigInt,
        contact_id -> Nullable<BigInt>,
        fired_at -> Timestamp,
        count -> BigInt,
        expires_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    automation_timers (automation_id, key) {
        automation_id -> BigInt,
        key -> Text,
        workspace_id -> BigInt,
        contact_id -> Nullable<BigInt>,
        since -> Timestamp,
        due_at -> Timestamp,
        details -> Text,
        chain -> Nullable<Text>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    automations,
    automation_sets,
    automation_firings,
    automation_marks
);

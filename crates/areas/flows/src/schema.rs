//! Tables of flows, as diesel sees them on both databases.

diesel::table! {
    flows (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        status -> Text,
        settings -> Text,
        graph -> Text,
        published_version -> Nullable<BigInt>,
        metadata -> Text,
        version -> BigInt,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    flow_versions (flow_id, version) {
        flow_id -> BigInt,
        version -> BigInt,
        workspace_id -> BigInt,
        settings -> Text,
        graph -> Text,
        scopes -> Text,
        key_id -> Text,
        lineage_id -> Text,
        env -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    flow_runs (id) {
        id -> Text,
        workspace_id -> BigInt,
        flow_id -> BigInt,
        version -> Nullable<BigInt>,
        livemode -> Bool,
        mode -> Text,
        status -> Text,
        pause_reason -> Nullable<Text>,
        contact_id -> Nullable<BigInt>,
        automation_id -> Nullable<BigInt>,
        key_id -> Text,
        lineage_id -> Text,
        content -> Text,
        state -> Nullable<Text>,
        output -> Nullable<Text>,
        error -> Nullable<Text>,
        response -> Nullable<Text>,
        chain -> Nullable<Text>,
        parent_run_id -> Nullable<Text>,
        root_run_id -> Text,
        nesting -> BigInt,
        once_key -> Nullable<Text>,
        attempt -> BigInt,
        step_count -> BigInt,
        energy -> BigInt,
        epoch -> BigInt,
        wake_at -> Nullable<Timestamp>,
        lease_until -> Nullable<Timestamp>,
        expires_at -> Timestamp,
        created_at -> Timestamp,
        started_at -> Nullable<Timestamp>,
        ended_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    flow_steps (run_id, position) {
        run_id -> Text,
        position -> BigInt,
        id -> Text,
        workspace_id -> BigInt,
        token -> BigInt,
        node_id -> Text,
        node_type -> Text,
        path -> Text,
        attempt -> BigInt,
        status -> Text,
        input -> Nullable<Text>,
        output -> Nullable<Text>,
        error -> Nullable<Text>,
        port -> Nullable<Text>,
        energy -> BigInt,
        started_at -> Timestamp,
        ended_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    flow_waits (run_id, token) {
        run_id -> Text,
        token -> BigInt,
        workspace_id -> BigInt,
        livemode -> Bool,
        position -> BigInt,
        kind -> Text,
        topic -> Nullable<Text>,
        key -> Nullable<Text>,
        contact_id -> Nullable<BigInt>,
        details -> Text,
        arrived -> Nullable<Text>,
        since -> Timestamp,
        due_at -> Nullable<Timestamp>,
    }
}

diesel::allow_tables_to_appear_in_same_query!(flows, flow_versions, flow_runs, flow_steps, flow_waits);

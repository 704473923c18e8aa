//! Tables of runs, as diesel sees them on both databases.

diesel::table! {
    runs (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        livemode -> Bool,
        agent_id -> BigInt,
        agent_version -> BigInt,
        status -> Text,
        input -> Nullable<Text>,
        output -> Nullable<Text>,
        conversation_id -> Text,
        ephemeral -> Bool,
        model -> Text,
        incomplete_reason -> Nullable<Text>,
        error -> Nullable<Text>,
        input_tokens -> BigInt,
        cached_tokens -> BigInt,
        output_tokens -> BigInt,
        reasoning_tokens -> BigInt,
        model_calls -> BigInt,
        tool_calls -> BigInt,
        energy -> BigInt,
        simulated_energy -> BigInt,
        options -> Text,
        metadata -> Text,
        key_id -> Text,
        key_lineage -> Text,
        request_id -> Text,
        lease_until -> Nullable<Timestamp>,
        epoch -> BigInt,
        queued_at -> Timestamp,
        started_at -> Nullable<Timestamp>,
        completed_at -> Nullable<Timestamp>,
        purged_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    run_steps (run_id, position) {
        run_id -> Text,
        position -> BigInt,
        workspace_id -> BigInt,
        id -> Text,
        kind -> Text,
        status -> Text,
        name -> Text,
        input -> Nullable<Text>,
        output -> Nullable<Text>,
        effect_key -> Nullable<Text>,
        input_tokens -> BigInt,
        output_tokens -> BigInt,
        energy -> BigInt,
        started_at -> Timestamp,
        completed_at -> Nullable<Timestamp>,
    }
}

diesel::table! {
    test_run_days (workspace_id, day) {
        workspace_id -> BigInt,
        day -> Text,
        runs -> BigInt,
    }
}

diesel::table! {
    conversation_memories (workspace_id, conversation_id, agent_id, livemode) {
        workspace_id -> BigInt,
        conversation_id -> Text,
        agent_id -> BigInt,
        livemode -> Bool,
        summary -> Text,
        through_run -> Text,
        updated_at -> Timestamp,
    }
}

diesel::allow_tables_to_appear_in_same_query!(runs, run_steps, test_run_days, conversation_memories);

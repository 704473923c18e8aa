//! The tables that the store itself writes, as diesel sees them on both databases: the outbox of events, and jobs.

mod data_tables;
mod import_tables;

pub use data_tables::*;
pub use import_tables::*;

diesel::table! {
    events (sequence) {
        sequence -> BigInt,
        id -> Text,
        workspace_id -> BigInt,
        kind -> Text,
        livemode -> Bool,
        data -> Text,
        request_id -> Nullable<Text>,
        created_at -> Timestamp,
        position -> Nullable<BigInt>,
        contact_id -> Nullable<BigInt>,
        key_id -> Nullable<Text>,
        idempotency_key -> Nullable<Text>,
        actor -> Nullable<Text>,
        root_event_id -> Nullable<Text>,
        depth -> BigInt,
    }
}

diesel::table! {
    jobs (id) {
        id -> BigInt,
        kind -> Text,
        unique_key -> Nullable<Text>,
        payload -> Text,
        run_at -> Timestamp,
        attempts -> BigInt,
        lease_until -> Nullable<Timestamp>,
        epoch -> BigInt,
        last_error -> Nullable<Text>,
        failed_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
        workspace_id -> Nullable<BigInt>,
    }
}

// Links read it until they ask `operation::ports::LinkTargets`; it belongs to `agents`.
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

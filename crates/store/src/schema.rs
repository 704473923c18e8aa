//! The tables, as diesel sees them on both databases. A test compares these pages with what the migrations make.

mod data_tables;
mod delivery_tables;
mod import_tables;
mod inbound_tables;

pub use data_tables::*;
pub use delivery_tables::*;
pub use import_tables::*;
pub use inbound_tables::*;

diesel::table! {
    plans (id) {
        id -> Text,
        name -> Text,
        description -> Text,
        price_cents -> BigInt,
        currency -> Text,
        rate_limit_rpm -> Nullable<BigInt>,
        monthly_quota -> Nullable<BigInt>,
        test_runs_per_day -> BigInt,
        contacts_limit -> Nullable<BigInt>,
        included_energy -> BigInt,
        usd_micros_per_1000_energy -> BigInt,
        restricted -> Bool,
        position -> BigInt,
    }
}

diesel::table! {
    partners (id) {
        id -> BigInt,
        name -> Text,
        created_at -> Timestamp,
    }
}

diesel::table! {
    workspaces (id) {
        id -> BigInt,
        slug -> Text,
        name -> Text,
        partner_id -> Nullable<BigInt>,
        plan_id -> Nullable<Text>,
        subscription_status -> Text,
        period_start -> Nullable<Timestamp>,
        period_end -> Nullable<Timestamp>,
        cancel_at_period_end -> Bool,
        blocked_reason -> Nullable<Text>,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    api_keys (id) {
        id -> Text,
        secret_hash -> Binary,
        name -> Text,
        env -> Text,
        scopes -> Text,
        lineage_id -> Text,
        workspace_id -> Nullable<BigInt>,
        partner_id -> Nullable<BigInt>,
        default_workspace_id -> Nullable<BigInt>,
        rate_limit_rpm -> Nullable<BigInt>,
        monthly_quota -> Nullable<BigInt>,
        budget_cents -> Nullable<BigInt>,
        budget_cutoff -> Bool,
        budget_version -> BigInt,
        expires_at -> Nullable<Timestamp>,
        revoked_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    key_requests (lineage_id, day, workspace_id) {
        lineage_id -> Text,
        day -> Text,
        workspace_id -> BigInt,
        requests -> BigInt,
    }
}

diesel::table! {
    idempotency_keys (lineage_id, key) {
        lineage_id -> Text,
        key -> Text,
        fingerprint -> Binary,
        request_id -> Text,
        state -> Text,
        fence -> BigInt,
        lease_until -> Timestamp,
        resource_id -> Nullable<Text>,
        status -> Nullable<BigInt>,
        body -> Nullable<Text>,
        expires_at -> Timestamp,
    }
}

diesel::table! {
    request_logs (id) {
        id -> Text,
        created_at -> Timestamp,
        workspace_id -> Nullable<BigInt>,
        key_id -> Nullable<Text>,
        operation -> Nullable<Text>,
        method -> Text,
        path -> Text,
        status -> BigInt,
        code -> Nullable<Text>,
        gate -> Nullable<Text>,
        livemode -> Nullable<Bool>,
        latency_us -> BigInt,
        energy -> BigInt,
        replayed -> Bool,
        client_request_id -> Nullable<Text>,
    }
}

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

diesel::table! {
    agents (id) {
        id -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        name_key -> Text,
        status -> Text,
        is_default -> Bool,
        version -> BigInt,
        settings -> Text,
        metadata -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    agent_versions (agent_id, version) {
        agent_id -> BigInt,
        version -> BigInt,
        workspace_id -> BigInt,
        name -> Text,
        settings -> Text,
        tools -> Text,
        key_id -> Nullable<Text>,
        restored_from -> Nullable<BigInt>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    agent_tools (agent_id, name) {
        agent_id -> BigInt,
        name -> Text,
        workspace_id -> BigInt,
        kind -> Text,
        settings -> Text,
        created_at -> Timestamp,
        updated_at -> Timestamp,
    }
}

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
    energy_accounts (workspace_id) {
        workspace_id -> BigInt,
        balance -> BigInt,
        reserved -> BigInt,
        state -> Text,
        last_recharge -> BigInt,
        updated_at -> Timestamp,
    }
}

diesel::table! {
    energy_grants (id) {
        id -> Text,
        workspace_id -> BigInt,
        kind -> Text,
        amount -> BigInt,
        remaining -> BigInt,
        priority -> BigInt,
        usd_micros_per_1000 -> BigInt,
        effective_at -> Timestamp,
        expires_at -> Nullable<Timestamp>,
        voided_at -> Nullable<Timestamp>,
        note -> Nullable<Text>,
        created_at -> Timestamp,
        pending -> Bool,
    }
}

diesel::table! {
    energy_holds (run_id) {
        run_id -> Text,
        workspace_id -> BigInt,
        key_lineage -> Text,
        month -> Text,
        amount -> BigInt,
        used -> BigInt,
        reserved_micros -> BigInt,
        state -> Text,
        expires_at -> Timestamp,
        created_at -> Timestamp,
        agent_id -> BigInt,
        first_step -> BigInt,
    }
}

diesel::table! {
    energy_entries (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        kind -> Text,
        amount -> BigInt,
        balance_after -> BigInt,
        counter_account -> Text,
        usd_micros -> BigInt,
        source_type -> Text,
        source_id -> Text,
        step -> BigInt,
        key_id -> Nullable<Text>,
        agent_id -> Nullable<BigInt>,
        request_id -> Nullable<Text>,
        operation -> Text,
        model -> Nullable<Text>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    grant_burns (entry_id, grant_id) {
        entry_id -> Text,
        grant_id -> Text,
        amount -> BigInt,
    }
}

diesel::table! {
    key_months (lineage_id, month) {
        lineage_id -> Text,
        month -> Text,
        spent_micros -> BigInt,
        reserved_micros -> BigInt,
    }
}

diesel::table! {
    agent_months (workspace_id, agent_id, month) {
        workspace_id -> BigInt,
        agent_id -> BigInt,
        month -> Text,
        spent -> BigInt,
    }
}

diesel::table! {
    budget_thresholds (lineage_id, month, budget_version, percent) {
        lineage_id -> Text,
        month -> Text,
        budget_version -> BigInt,
        percent -> BigInt,
        fired_at -> Timestamp,
    }
}

diesel::table! {
    executions (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        kind -> Text,
        source_id -> Text,
        status -> Text,
        livemode -> Bool,
        energy -> BigInt,
        usd_micros -> BigInt,
        key_id -> Nullable<Text>,
        agent_id -> Nullable<BigInt>,
        model -> Nullable<Text>,
        created_at -> Timestamp,
        first_step -> BigInt,
        last_step -> Nullable<BigInt>,
    }
}

diesel::table! {
    invoices (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        processor_id -> Text,
        number -> Text,
        status -> Text,
        total_cents -> BigInt,
        currency -> Text,
        pdf_url -> Nullable<Text>,
        lines -> Text,
        due_at -> Nullable<Timestamp>,
        paid_at -> Nullable<Timestamp>,
        created_at -> Timestamp,
    }
}

diesel::table! {
    payment_methods (workspace_id, id) {
        workspace_id -> BigInt,
        id -> Text,
        processor_id -> Text,
        kind -> Text,
        brand -> Nullable<Text>,
        last4 -> Nullable<Text>,
        exp_month -> Nullable<BigInt>,
        exp_year -> Nullable<BigInt>,
        is_default -> Bool,
        created_at -> Timestamp,
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

diesel::table! {
    installation (name) {
        name -> Text,
        value -> Text,
    }
}

diesel::allow_tables_to_appear_in_same_query!(
    plans,
    partners,
    workspaces,
    api_keys,
    key_requests,
    idempotency_keys,
    request_logs,
    events,
    jobs,
    agents,
    agent_versions,
    agent_tools,
    runs,
    run_steps,
    conversation_memories,
    test_run_days,
    energy_accounts,
    energy_grants,
    energy_holds,
    energy_entries,
    grant_burns,
    key_months,
    agent_months,
    budget_thresholds,
    executions,
    invoices,
    payment_methods
);

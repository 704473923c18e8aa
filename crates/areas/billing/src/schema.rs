//! Tables of Energy and payments, as diesel sees them on both databases.

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
        metered -> Bool,
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

diesel::allow_tables_to_appear_in_same_query!(
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
